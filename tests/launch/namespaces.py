"""Two hosts on one machine: network namespaces joined by a cable. Shared by tests; needs root and iproute2."""
import os
import random
import subprocess
import tempfile


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def namespaces_permitted():
    """The reason why not, or nothing."""
    name = f"msrt{os.getpid()}t"
    try:
        ip("netns", "add", name)
        ip("netns", "exec", name, "ip", "link", "set", "lo", "up")
        ip("netns", "del", name)
    except (OSError, subprocess.CalledProcessError) as e:
        return f"network namespaces cannot be made here: {getattr(e, 'stderr', None) or e}".strip()
    return ""


class TwoHosts:
    """`here` is the namespace of launch and of the ranks on localhost, `there` is the other host, `wire` one between them."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        number = f"{os.getpid()}x{random.randrange(1000)}"
        self.here, self.there, self.wire = (f"msrt{number}{end}" for end in "abw")
        for name in (self.here, self.there, self.wire):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")

    def close(self):
        for name in (self.here, self.there, self.wire):
            ip("netns", "del", name)
        self.folder.cleanup()

    def connect(self):
        """A cable between the two hosts."""
        ip("-n", self.here, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", self.there)
        self.give_addresses()

    def give_addresses(self):
        for number, name in enumerate((self.here, self.there), 1):
            ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")

    def launch(self, msrun, ranks_here, ranks_there):
        """The command that starts a job on both hosts, up to its options and `--`."""
        hosts = os.path.join(self.folder.name, f"hosts_{ranks_here}_{ranks_there}")
        with open(hosts, "w") as f:
            f.write(f"localhost slots={ranks_here}\n{self.there} slots={ranks_there}\n")
        return ["ip", "netns", "exec", self.here, msrun, "launch", "--hosts", hosts, "--rsh", "ip netns exec {host} sh -c", "--address",
                "10.77.0.1"]
