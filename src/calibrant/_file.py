"""A file that is whole or not there: written beside its place, flushed to the disk, then moved."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from calibrant.errors import InvalidValueError


@contextmanager
def draft_of(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """Give the path of an empty draft file beside `path`; when the block ends, the draft takes its place.

    Everything that the library writes goes through here. The block fills the draft, in one go or batch by batch. If it
    raises, the draft is removed and a file that was there stays as it was. The draft is flushed to the disk before it
    is moved, and gets the permissions of the file that it replaces. A symbolic link stays one.

    Parameters
    ----------
    path : path
        Where the file will be.
    overwrite : bool
        Whether a file that is there may be replaced; otherwise FileExistsError is raised, before the block and, if the
        file has appeared meanwhile, after it.

    Raises
    ------
    FileExistsError, IsADirectoryError, FileNotFoundError
        Where a file is there and `overwrite` is False, where a folder is there, and where there is no folder for it.
    InvalidValueError
        Where something is there that is neither a file nor a folder, such as a pipe.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder, "a.txt")
    ...     with draft_of(place) as draft:
    ...         _ = draft.write_text("whole")
    ...     place.read_text(), [file.name for file in place.parent.iterdir()]
    ('whole', ['a.txt'])
    """
    name = os.fspath(path)
    place = os.path.realpath(name)
    with suppress(FileNotFoundError):
        _check_place(os.stat(place), name, overwrite)
    folder, file_name = os.path.split(place)
    draft = os.path.join(folder, f".{file_name}.{secrets.token_hex(6)}.tmp")
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        yield Path(draft)
        with open(draft, "rb+") as file:
            os.fsync(file.fileno())
        if overwrite:
            with suppress(OSError):  # there may be no file to take permissions from
                os.chmod(draft, stat.S_IMODE(os.stat(place).st_mode))
            os.replace(draft, place)
        else:
            _move_to_free_place(draft, place, name)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft)
    _flush_folder(folder)


def write_file(data: bytes, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write `data` to `path`, as `draft_of` does: the file is whole or not there."""
    with draft_of(path, overwrite=overwrite) as draft:
        draft.write_bytes(data)


def _check_place(there: os.stat_result, name: str, overwrite: bool) -> None:
    if stat.S_ISDIR(there.st_mode):
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file", name)
    if not stat.S_ISREG(there.st_mode):
        raise InvalidValueError("the path", "name a regular file", got=repr(name), advice="pass an open file instead")
    if not overwrite:
        raise _exists(name)


def _move_to_free_place(draft: str, place: str, name: str) -> None:
    """Move the file unless another one has appeared there meanwhile."""
    try:
        os.link(draft, place)
    except FileExistsError:
        raise _exists(name) from None
    except OSError:  # a file system without links
        if os.path.exists(place):
            raise _exists(name) from None
        os.replace(draft, place)


def _exists(name: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, "the file exists already; pass overwrite=True to replace it", name)


def _flush_folder(folder: str) -> None:
    """Make the new name last, where folders can be flushed."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
