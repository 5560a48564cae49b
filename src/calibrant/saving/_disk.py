"""A file that is whole or not there: written beside its place, flushed to the disk, then moved."""

import errno
import os
import secrets
import stat
from contextlib import suppress

from calibrant.errors import InvalidValueError


def write_atomically(data: bytes, path: str, *, overwrite: bool) -> None:
    """Write `data` to `path`; without `overwrite`, only where no file is."""
    place = os.path.realpath(path)
    with suppress(FileNotFoundError):
        there = os.stat(place)
        if stat.S_ISDIR(there.st_mode):
            raise IsADirectoryError(errno.EISDIR, "a model file needs a name of its own; this is a directory", path)
        if not stat.S_ISREG(there.st_mode):
            raise InvalidValueError(f"path_or_file must name a regular file; got {path!r}: pass an open file instead")
        if not overwrite:
            raise _exists(path)
    beside = f"{place}.{secrets.token_hex(6)}.tmp"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if overwrite:
            with suppress(OSError):  # keep who may read it, where there was one
                os.chmod(beside, stat.S_IMODE(os.stat(place).st_mode))
            os.replace(beside, place)
        else:
            _move_to_free_place(beside, place, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside)
    _flush_folder(os.path.dirname(place))


def _move_to_free_place(beside: str, place: str, path: str) -> None:
    """Move the file unless another one has come there in the meantime."""
    try:
        os.link(beside, place)
    except FileExistsError:
        raise _exists(path) from None
    except OSError:  # a file system without links
        if os.path.exists(place):
            raise _exists(path) from None
        os.replace(beside, place)


def _exists(path: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, "the file is there already; pass overwrite=True to replace it", path)


def _flush_folder(folder: str) -> None:
    """Make the new name last, where folders can be flushed; elsewhere the system sees to it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
