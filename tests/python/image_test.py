"""Images of any size: arrays and files against a run on the whole image."""
import os
import unittest

import image_files
import msrt
import numpy as np
from models import ModelCase

SHAPE = (3, 61, 47)


class Image(ModelCase):
    def setUp(self):
        super().setUp()
        self.model = self.converted(image_files.network())
        self.image = np.random.default_rng(3).integers(0, 256, SHAPE, np.uint8)

    def whole(self, image):
        return msrt.load(self.model, accuracy="exact").run({"x": image[None]})

    def test_arrays_have_the_bits_of_the_whole(self):
        want = self.whole((self.image.astype(np.float32) - np.float32(100)) / np.float32(50))
        for executor in ("auto", "stream", "tiles"):
            got = msrt.run_image(self.model, self.image, executor=executor, normalize={"mean": 100, "std": 50}, outputs={"features": None})
            self.assertEqual(sorted(got), ["features", "scores"])
            for name, array in got.items():
                np.testing.assert_array_equal(array, want[name][0], executor)

    def test_files_have_the_bits_of_the_whole(self):
        want = self.whole(self.image.astype(np.float32))["scores"][0]
        np.save(self.path("in.npy"), self.image)
        seen = []
        report = msrt.run_image(self.model, self.path("in.npy"), self.path("out.npy"), memory="1GiB", progress=seen.append)
        np.testing.assert_array_equal(np.load(self.path("out.npy")), want)
        self.assertEqual(report["recomputed_rows"], 0)
        self.assertEqual(seen[-1]["fraction"], 1.0)
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "exists already"):
            msrt.run_image(self.model, self.path("in.npy"), self.path("out.npy"))
        msrt.run_image(self.model, self.path("in.npy"), self.path("out.npy"), classes=True, overwrite=True)
        np.testing.assert_array_equal(np.load(self.path("out.npy"))[0], want.argmax(axis=0))

    def test_arrays_are_resumed_with_an_identity(self):
        """Their pixels are not compared."""
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "has an identity"):
            msrt.ImageJob(self.model, self.image, self.path("out.npy"), resume=True)
        msrt.run_image(self.model, self.image, self.path("out.npy"), resume=True, identity="one")
        np.testing.assert_array_equal(np.load(self.path("out.npy")), self.whole(self.image.astype(np.float32))["scores"][0])

    def test_ranks_have_the_bits_of_the_whole(self):
        want = self.whole(self.image.astype(np.float32))["scores"][0]
        for executor in ("halo", "stream", "tiles"):
            np.testing.assert_array_equal(msrt.run_image(self.model, self.image, executor=executor, split=(2, 2))["scores"], want)

    def test_tiff_needs_the_image_module_only(self):
        if not os.path.exists(os.path.join(os.path.dirname(msrt.__file__), "lib", "libmsrt_images.so")):
            return  # a build without libtiff
        image_files.write_tiff(self.path("in.tif"), *SHAPE, self.image.ravel().tolist())
        got = msrt.run_image(self.model, self.path("in.tif"))["scores"]
        np.testing.assert_array_equal(got, self.whole(self.image.astype(np.float32))["scores"][0])

    def test_no_data_of_an_array_is_not_computed(self):
        self.image[:, 20:, :] = 7
        got = msrt.run_image(self.model, self.image, no_data=7)["scores"]
        self.assertTrue(np.isnan(got[:, 22:]).all())
        np.testing.assert_array_equal(got[:, :19], self.whole(self.image.astype(np.float32))["scores"][0][:, :19])

    def test_plan_is_explained_without_running(self):
        job = msrt.ImageJob(self.model, self.image, self.path("out.npy"), memory="1GiB")
        self.assertTrue(job.explain().startswith("<svg"))
        self.assertEqual(job.report["plan"]["limit_bytes"], 2**30)
        self.assertFalse(os.path.exists(self.path("out.npy.part")))

    def test_exceptions_of_callbacks_are_raised(self):
        def stop(_progress):
            raise KeyError("enough")
        with self.assertRaises(KeyError):
            msrt.run_image(self.model, self.image, executor="tiles", progress=stop)

    def test_errors_are_exceptions(self):
        for error, message, options in [(msrt.LimitExceededError, "set the limit to", {"memory": 1000}),
                                        (msrt.InvalidArgumentError, "needs several ranks", {"executor": "halo"}),
                                        (msrt.InvalidArgumentError, "memory is 'much'", {"memory": "much"}),
                                        (msrt.InvalidArgumentError, "executor is 'fast'", {"executor": "fast"}),
                                        (msrt.NotFoundError, "no output 'nothing'", {"head": "nothing"})]:
            with self.assertRaisesRegex(error, message):
                msrt.run_image(self.model, self.image, **options)
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "channels x rows x columns"):
            msrt.run_image(self.model, self.image[0])
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "takes 3"):
            msrt.run_image(self.model, self.image[:2])


if __name__ == "__main__":
    unittest.main()
