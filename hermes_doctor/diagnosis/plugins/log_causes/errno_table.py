"""Error numbers and texts of Linux, macOS and Windows, by the name of the error."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_doctor.core.lazy import NamedTuple


class OsError(NamedTuple):
    """An error of an operating system."""

    linux: int
    macos: int
    windows: Sequence[int]
    """The numbers of Windows and of its sockets."""
    texts: Sequence[str]
    """What the systems say, in small letters."""


_ROWS = (
    # name, Linux, macOS, Windows, texts
    ("EPERM", 1, 1, "", "operation not permitted"),
    ("ENOENT", 2, 2, "2 3",
     "no such file or directory|the system cannot find the file specified"
     "|the system cannot find the path specified"),
    ("ESRCH", 3, 3, "", "no such process"),
    ("EINTR", 4, 4, "10004", "interrupted system call"),
    ("EIO", 5, 5, "23 1117 483",
     "input/output error|the request could not be performed because of an i/o device error"
     "|data error (cyclic redundancy check)"),
    ("ENXIO", 6, 6, "", "no such device or address|device not configured"),
    ("E2BIG", 7, 7, "206", "argument list too long|the filename or extension is too long"),
    ("ENOEXEC", 8, 8, "193",
     "exec format error|is not a valid win32 application"),
    ("EBADARCH", 0, 86, "216",
     "bad cpu type in executable"
     "|this version of %1 is not compatible with the version of windows you're running"),
    ("EBADF", 9, 9, "6 10009", "bad file descriptor|the handle is invalid"),
    ("ECHILD", 10, 10, "", "no child processes"),
    ("EAGAIN", 11, 35, "10035", "resource temporarily unavailable"),
    ("ENOMEM", 12, 12, "8 14 1455",
     "cannot allocate memory|not enough memory resources are available to process this command"
     "|not enough storage is available to |the paging file is too small for this operation"),
    ("EACCES", 13, 13, "5",
     "permission denied|access is denied"),
    ("EBUSY", 16, 16, "32 33 170",
     "device or resource busy|resource busy"
     "|the process cannot access the file because it is being used by another process"
     "|the process cannot access the file because another process has locked a portion"),
    ("EEXIST", 17, 17, "80 183",
     "file exists|cannot create a file when that file already exists"),
    ("EXDEV", 18, 18, "17", "cross-device link|invalid cross-device link"),
    ("ENODEV", 19, 19, "", "no such device|operation not supported by device"),
    ("ENOTDIR", 20, 20, "267", "not a directory|the directory name is invalid"),
    ("EISDIR", 21, 21, "", "is a directory"),
    ("EINVAL", 22, 22, "87 10022", "the parameter is incorrect"),
    ("ENFILE", 23, 23, "", "too many open files in system"),
    ("EMFILE", 24, 24, "4 10024",
     "too many open files|the system cannot open the file|too many open sockets"),
    ("ENOTTY", 25, 25, "", "inappropriate ioctl for device"),
    ("ETXTBSY", 26, 26, "", "text file busy"),
    ("EFBIG", 27, 27, "", "file too large"),
    ("ENOSPC", 28, 28, "39 112",
     "no space left on device|there is not enough space on the disk|the disk is full"),
    ("EROFS", 30, 30, "19", "read-only file system|the media is write protected"),
    ("EMLINK", 31, 31, "", "too many links"),
    ("EPIPE", 32, 32, "109 232 233",
     "broken pipe|the pipe has been ended|the pipe is being closed"),
    ("EDEADLK", 35, 11, "1131", "resource deadlock avoided|resource deadlock would occur"),
    ("ENAMETOOLONG", 36, 63, "206", "file name too long"),
    ("ENOTEMPTY", 39, 66, "145", "directory not empty|the directory is not empty"),
    ("ELOOP", 40, 62, "", "too many levels of symbolic links"),
    ("EPROTO", 71, 100, "", "protocol error"),
    ("EBADMSG", 74, 94, "", "bad message"),
    ("ENOTSOCK", 88, 38, "10038", "socket operation on non-socket"),
    ("EMSGSIZE", 90, 40, "10040", "message too long"),
    ("EAFNOSUPPORT", 97, 47, "10047",
     "address family not supported by protocol|address family not supported"),
    ("EADDRINUSE", 98, 48, "10048",
     "address already in use|only one usage of each socket address"),
    ("EADDRNOTAVAIL", 99, 49, "10049",
     "cannot assign requested address|can't assign requested address"
     "|the requested address is not valid in its context"),
    ("ENETDOWN", 100, 50, "10050", "network is down|a socket operation encountered a dead network"),
    ("ENETUNREACH", 101, 51, "10051 1231",
     "network is unreachable|a socket operation was attempted to an unreachable network"
     "|the network location cannot be reached"),
    ("ENETRESET", 102, 52, "10052 64",
     "network dropped connection on reset|the specified network name is no longer available"),
    ("ECONNABORTED", 103, 53, "10053 1236",
     "software caused connection abort|an established connection was aborted by the software"
     "|the network connection was aborted by the local system"),
    ("ECONNRESET", 104, 54, "10054",
     "connection reset by peer|an existing connection was forcibly closed by the remote host"),
    ("ENOBUFS", 105, 55, "10055",
     "no buffer space available|because the system lacked sufficient buffer space"),
    ("ENOTCONN", 107, 57, "10057",
     "transport endpoint is not connected|socket is not connected"),
    ("ESHUTDOWN", 108, 58, "10058",
     "cannot send after transport endpoint shutdown|can't send after socket shutdown"),
    ("ETIMEDOUT", 110, 60, "10060 121 1460",
     "connection timed out|operation timed out"
     "|a connection attempt failed because the connected party did not properly respond"
     "|the semaphore timeout period has expired"),
    ("ECONNREFUSED", 111, 61, "10061 1225",
     "connection refused|no connection could be made because the target machine actively refused"
     "|the remote computer refused the network connection"),
    ("EHOSTDOWN", 112, 64, "10064", "host is down"),
    ("EHOSTUNREACH", 113, 65, "10065 1232",
     "no route to host|a socket operation was attempted to an unreachable host"),
    ("EALREADY", 114, 37, "10037", "operation already in progress"),
    ("ESTALE", 116, 70, "", "stale file handle|stale nfs file handle"),
    ("EUCLEAN", 117, 0, "1392 1393",
     "structure needs cleaning|the file or directory is corrupted and unreadable"
     "|the disk structure is corrupted and unreadable"),
    ("EREMOTEIO", 121, 0, "", "remote i/o error"),
    ("EDQUOT", 122, 69, "1816",
     "disk quota exceeded|disc quota exceeded|not enough quota is available"),
    ("ENOMEDIUM", 123, 0, "21", "no medium found|the device is not ready"),
    ("EAI_NONAME", -2, 8, "11001",
     "name or service not known|nodename nor servname provided, or not known"
     "|name does not resolve|no such host is known|getaddrinfo failed"),
    ("EAI_AGAIN", -3, 2, "11002",
     "temporary failure in name resolution|name resolution temporarily failed"
     "|this is usually a temporary error during hostname resolution"
     "|temporary failure in name server|temporary name server failure"),
    ("EAI_FAIL", -4, 4, "11003",
     "non-recoverable failure in name resolution|non-recoverable name server failure"
     "|a non-recoverable error occurred during a database lookup"),
    ("EAI_NODATA", -5, 7, "11004",
     "no address associated with hostname|no address associated with nodename"
     "|the requested name is valid, but no data of the requested type was found"),
)  # fmt: skip
ERRORS = {
    name: OsError(linux, macos, tuple(map(int, windows.split())), tuple(texts.split("|")))
    for name, linux, macos, windows, texts in _ROWS
}
SPELLINGS = {
    "EWOULDBLOCK": "EAGAIN",
    "EDEADLOCK": "EDEADLK",
    "ENOTFOUND": "EAI_NONAME",  # Node.js
} | {f"WSA{name}": name for name in ERRORS if not name.startswith("EAI_")}
"""Other names of the same errors."""


def names_of(number: int, windows: bool = False) -> tuple[str, ...]:
    """Return the errors that have a number: of Windows, or of Linux before those of macOS."""
    if windows or number >= 10_000:
        return tuple(name for name, one in ERRORS.items() if number in one.windows)
    linux = [name for name, one in ERRORS.items() if number and one.linux == number]
    macos = [name for name, one in ERRORS.items() if number and one.macos == number]
    return tuple(dict.fromkeys(linux + macos))
