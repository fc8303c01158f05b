"""The Unix socket in the state directory: how it is made, and how it is reached.

The kernel takes no address longer than about 100 bytes. A state directory may well be deeper, so a long path is
taken through a descriptor of its directory, by both sides; where the system cannot do that, the path stays as it is.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Its name in the state directory.
SOCKET = "hark.sock"
# Bytes every system takes: Linux has 107, the BSDs and macOS 103.
_LONGEST = 103
_DESCRIPTORS = Path("/proc/self/fd")


@contextmanager
def address(path: Path) -> Iterator[str]:
    """What to bind or to connect to for a socket at `path`; good while the context lasts.

    Raises OSError when the directory is not there.
    """
    if len(os.fsencode(path)) <= _LONGEST or not _DESCRIPTORS.exists():
        yield str(path)
        return
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield str(_DESCRIPTORS / str(directory) / path.name)
    finally:
        os.close(directory)


def listening_socket(path: Path) -> socket.socket:
    """A socket to listen on at `path`, for its owner alone (0600), in place of one that an earlier process left.

    The caller holds the lock of the directory, so nobody else listens there. Raises OSError.
    """
    path.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with address(path) as where:
            made.bind(where)
        path.chmod(0o600)  # nobody can connect before it listens
    except BaseException:
        made.close()
        raise
    return made
