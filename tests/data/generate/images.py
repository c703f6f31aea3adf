#!/usr/bin/env python3
"""Writes the images of tests/data/images with software other than msrt: tifffile, GDAL (rasterio), Pillow, NumPy.

  python3 tests/data/generate/images.py tests/data/images     (needs numpy, tifffile, imagecodecs, rasterio, pillow)

Lossless files hold the pattern below, which core/image/image_files_test.cc computes again. Those that are lossy have the pixels that
Pillow decodes beside them, as .npy.
"""
import os
import struct
import sys
import zlib

import numpy as np
import rasterio
import tifffile
from PIL import Image
from rasterio.enums import Resampling
from rasterio.transform import Affine

OUT = sys.argv[1]


def pattern(dtype, channels, height, width):
    c, r, x = np.meshgrid(np.arange(channels), np.arange(height), np.arange(width), indexing="ij")
    v = (c * 37 + r * 11 + x * 7 + (r * x) % 13).astype(np.int64)
    kind = np.dtype(dtype).name
    return {"uint8": v % 251, "int8": v % 251 - 125, "uint16": v * 97 % 65521, "int16": v * 97 % 65521 - 32768,
            "uint32": v * 1000003, "int32": v * 1000003 - 2000000000, "float32": v * 0.25 - 100, "float64": v / 3.0}[kind].astype(dtype)


def path(name):
    return os.path.join(OUT, name)


def write_tifffile():
    def contig(a):
        return np.moveaxis(a, 0, -1)

    tifffile.imwrite(path("tiles_deflate_f32.tif"), contig(pattern("f4", 5, 45, 61)), tile=(16, 32), compression="zlib", predictor=True,
                     planarconfig="contig", photometric="minisblack", extrasamples=[0] * 4)
    tifffile.imwrite(path("planar_lzw_u16.tif"), pattern("u2", 3, 45, 61), rowsperstrip=7, compression="lzw", planarconfig="separate",
                     photometric="minisblack", extrasamples=[0] * 2)
    tifffile.imwrite(path("big_endian_packbits_i16.tif"), contig(pattern("i2", 2, 45, 61)), byteorder=">", rowsperstrip=9,
                     compression="packbits", planarconfig="contig", photometric="minisblack", extrasamples=[0])
    tifffile.imwrite(path("bigtiff_f64.tif"), pattern("f8", 1, 19, 23)[0], bigtiff=True, photometric="minisblack")
    tifffile.imwrite(path("tiles_zstd_i32.tif"), pattern("i4", 1, 45, 61)[0], tile=(32, 16), compression="zstd", predictor=True)
    tifffile.imwrite(path("strips_u32.tif"), pattern("u4", 1, 45, 61)[0], rowsperstrip=4)
    tifffile.imwrite(path("strips_lzma_i8.tif"), pattern("i1", 1, 45, 61)[0], rowsperstrip=10, compression="lzma")
    with tifffile.TiffWriter(path("sub_ifds_u8.tif")) as tif:
        tif.write(contig(pattern("u1", 3, 64, 80)), subifds=2, tile=(16, 16), photometric="rgb", compression="zlib")
        for size in ((32, 40), (16, 20)):
            tif.write(contig(pattern("u1", 3, *size)), subfiletype=1, tile=(16, 16), photometric="rgb", compression="zlib")
    with tifffile.TiffWriter(path("pages_u8.tif")) as tif:
        for size in ((20, 30), (21, 31)):
            tif.write(pattern("u1", 1, *size)[0], photometric="minisblack")


def gdal(name, array, **options):
    tags = {key: options.pop(key) for key in ("nodata", "crs", "transform") if key in options}
    with rasterio.open(path(name), "w", driver="GTiff", count=array.shape[0], height=array.shape[1], width=array.shape[2],
                       dtype=array.dtype, **tags, **options) as out:
        yield out
        out.write(array)


def write_gdal():
    utm = {"crs": "EPSG:32633", "transform": Affine(10, 0, 500000, 0, -10, 4600000)}
    for _ in gdal("geo_pyramid_u16.tif", pattern("u2", 4, 70, 90), nodata=0, tiled=True, blockxsize=32, blockysize=32,
                  compress="deflate", predictor=2, interleave="pixel", **utm):
        pass
    with rasterio.open(path("geo_pyramid_u16.tif"), "r+") as out:
        out.build_overviews([2, 4], Resampling.nearest)
    for level, factor in enumerate((2, 4)):
        with rasterio.open(path("geo_pyramid_u16.tif"), overview_level=level) as made:
            np.save(path(f"geo_pyramid_u16_{factor}.npy"), made.read())
    rotated = {"crs": "EPSG:4326", "transform": Affine(0.5, 0.1, 10, 0.2, -0.4, 50)}
    for _ in gdal("geo_rotated_lerc_f32.tif", pattern("f4", 1, 30, 40), compress="lerc", max_z_error=0, **rotated):
        pass
    for _ in gdal("bits_u8.tif", pattern("u1", 1, 30, 41) % 2, nbits=1):
        pass
    for out in gdal("palette_u8.tif", pattern("u1", 1, 30, 41) % 5):
        out.write_colormap(1, {i: (i * 50, 255 - i * 50, i, 255) for i in range(5)})
    # Only the first tile has data; the others are not in the file.
    with rasterio.open(path("sparse_f32.tif"), "w", driver="GTiff", count=1, height=48, width=48, dtype="float32", nodata=-9999, tiled=True,
                       blockxsize=16, blockysize=16, sparse_ok=True) as out:
        out.write(pattern("f4", 1, 16, 16), window=((0, 16), (0, 16)))
    # JPEG 2000 is what only GDAL reads.
    with rasterio.open(path("gdal_u8.jp2"), "w", driver="JP2OpenJPEG", count=1, height=40, width=50, dtype="uint8", quality=100,
                       reversible="YES") as out:
        out.write(pattern("u1", 1, 40, 50))


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_interlaced_png(name, image):
    """Adam7, which Pillow does not write."""
    data = b""
    for y0, dy, x0, dx in ((0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4), (2, 4, 0, 2), (0, 2, 1, 2), (1, 2, 0, 1)):
        for row in image[y0::dy, x0::dx]:
            data += b"\0" + row.tobytes()
    height, width = image.shape
    with open(path(name), "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 1)) +
                  png_chunk(b"IDAT", zlib.compress(data)) + png_chunk(b"IEND", b""))


def write_pillow():
    rgb = np.moveaxis(pattern("u1", 3, 45, 61), 0, -1)
    Image.fromarray(rgb).save(path("rgb.png"))
    Image.fromarray(np.moveaxis(pattern("u1", 4, 45, 61), 0, -1)).save(path("rgba.png"))
    Image.fromarray(pattern("u2", 1, 45, 61)[0]).save(path("gray16.png"))
    Image.fromarray((pattern("u1", 1, 45, 61)[0] % 2).astype(bool)).save(path("bits.png"))
    indexed = Image.fromarray(pattern("u1", 1, 45, 61)[0] % 5, "P")
    indexed.putpalette([value for i in range(5) for value in (i * 50, 255 - i * 50, i)])
    indexed.save(path("palette.png"))
    write_interlaced_png("interlaced.png", pattern("u1", 1, 45, 61)[0])
    smooth = np.clip(np.add.outer(np.arange(45) * 3, np.arange(61) * 2)[:, :, None] + np.array([0, 20, -30]), 0, 255).astype("u1")
    for name, image, options in (("rgb_420.jpg", Image.fromarray(smooth), {"quality": 90}),
                                 ("gray.jpg", Image.fromarray(smooth[:, :, 0]), {"quality": 90}),
                                 ("progressive.jpg", Image.fromarray(smooth), {"quality": 90, "progressive": True}),
                                 ("cmyk.jpg", Image.fromarray(smooth).convert("CMYK"), {"quality": 90})):
        image.save(path(name), **options)
        decoded = np.atleast_3d(np.asarray(Image.open(path(name))))
        if name == "cmyk.jpg":
            decoded = 255 - decoded  # Pillow inverts Adobe's CMYK; msrt returns the values of the file
        np.save(path(name.replace(".jpg", ".npy")), np.moveaxis(decoded, -1, 0))


def write_numpy():
    np.save(path("chw_f32.npy"), pattern("f4", 3, 9, 11))
    np.save(path("hw_u8.npy"), pattern("u1", 1, 9, 11)[0])
    np.save(path("big_endian_i16.npy"), pattern("i2", 2, 9, 11).astype(">i2"))
    np.save(path("fortran_f32.npy"), np.asfortranarray(pattern("f4", 3, 9, 11)))
    with open(path("version2_f64.npy"), "wb") as out:
        np.lib.format.write_array(out, pattern("f8", 1, 9, 11)[None], version=(2, 0))


os.makedirs(OUT, exist_ok=True)
write_tifffile()
write_gdal()
write_pillow()
write_numpy()
