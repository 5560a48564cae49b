"""Write files atomically: to a draft next to the target, flushed to disk, then moved."""

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from calibrant.errors import InvalidValueError

try:
    import fcntl
except ImportError:  # no such locks on Windows, so drafts of killed processes remain
    fcntl = None  # type: ignore[assignment]


@contextmanager
def draft_of(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """Yield the path of an empty draft file next to `path`.

    When the block ends, the draft replaces the target.

    The library writes all files through this function. The block fills the draft, all at once or
    batch by batch. If it raises, the draft is removed and an existing file is unchanged. The draft
    is flushed to disk before it is moved, and gets the permissions of the file it replaces. Only
    regular files are replaced. A symbolic link is followed: it stays a link, and its target is
    replaced or created. Of several writers that may not overwrite, only one succeeds.

    A killed process leaves its draft behind. The next draft of the same file removes it.

    Parameters
    ----------
    path : path
        Where the file will be.
    overwrite : bool
        Whether a file that is there may be replaced; otherwise FileExistsError is raised, before
        the block and, if the file has appeared meanwhile, after it.

    Raises
    ------
    FileExistsError, IsADirectoryError, FileNotFoundError, PermissionError
        Where a file is there and `overwrite` is False, where a folder is there, where there is no
        folder for it, and where that folder may not be written to.
    InvalidValueError
        Where something is there that is neither a file nor a folder, such as a pipe or a device.

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
    check_place(path, overwrite=overwrite)
    place = os.path.realpath(path)
    folder, file_name = os.path.split(place)
    _remove_old_drafts(folder, file_name)
    draft = os.path.join(folder, f".{file_name}.{secrets.token_hex(6)}.tmp")
    try:  # before there is a draft, because a signal may come at any moment
        with _new_draft(draft) as file:
            yield Path(draft)
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # Windows cannot move an open file
            check_place(path, overwrite=overwrite)
            if overwrite:
                with suppress(FileNotFoundError):  # there may be no file to copy permissions from
                    os.chmod(draft, stat.S_IMODE(os.stat(place).st_mode))
                os.replace(draft, place)
            else:
                _move_to_free_place(draft, place, os.fspath(path))
    finally:
        with suppress(OSError):  # it was moved, or could not be made
            os.unlink(draft)
    _flush_folder(folder)


def write_file(data: bytes, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write `data` to `path` atomically, as `draft_of` does."""
    with draft_of(path, overwrite=overwrite) as draft:
        draft.write_bytes(data)


def check_place(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise the error of `draft_of` if no file can be written to this path."""
    name = os.fspath(path)
    folder = os.path.dirname(os.path.realpath(name))
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            errno.ENOENT, "there is no such folder", os.path.dirname(name) or folder
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        reason = "no file can be written to this folder; name another, or change its permissions"
        raise PermissionError(errno.EACCES, reason, os.path.dirname(name) or folder)
    try:
        kind = os.stat(name).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file", name)
    if not stat.S_ISREG(kind):
        raise InvalidValueError(
            "the output", "be a regular file", got=f"{name!r}, a pipe, device or socket"
        )
    if not overwrite:
        raise _exists(name)


def _new_draft(name: str) -> BinaryIO:
    """A new, empty file, locked as long as it is open and this process lives."""
    while True:
        file = open(name, "xb")  # noqa: SIM115
        try:
            _lock(file)
            if os.path.exists(name):  # else it was taken for an old draft before it was locked
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def _lock(file: BinaryIO) -> None:
    """Lock a file, where the system has locks."""
    with suppress(OSError):  # a file system without locks
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)


def _remove_old_drafts(folder: str, file_name: str) -> None:
    """Remove drafts of this file that no process has locked: their writers were killed."""
    if fcntl is None:
        return
    ours = re.compile(rf"\.{re.escape(file_name)}\.[0-9a-f]{{12}}\.tmp")
    for name in filter(ours.fullmatch, os.listdir(folder)):
        with suppress(OSError):  # it is locked, gone, or not ours to open
            old = os.open(os.path.join(folder, name), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(old, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(os.path.join(folder, name))
            finally:
                os.close(old)


def _move_to_free_place(draft: str, place: str, name: str) -> None:
    """Move the file, unless another one has appeared at its target meanwhile."""
    try:
        os.link(draft, place)
    except FileExistsError:
        raise _exists(name) from None
    except OSError:  # a file system without links
        _take_and_replace(draft, place, name)


def _take_and_replace(draft: str, place: str, name: str) -> None:
    """Create an empty file, which only one writer can do, and replace it with the draft."""
    try:
        open(place, "xb").close()
    except FileExistsError:
        raise _exists(name) from None
    try:
        os.replace(draft, place)
    except BaseException:
        os.unlink(place)
        raise


def _exists(name: str) -> FileExistsError:
    return FileExistsError(
        errno.EEXIST, "the file exists already; pass overwrite=True to replace it", name
    )


def _flush_folder(folder: str) -> None:
    """Flush the folder, if possible, so that the new name is durable."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
