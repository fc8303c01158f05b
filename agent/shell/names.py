"""Which variables a command may be given, and which it may not."""

import re
from collections.abc import Mapping

# What the read-only table relies on: git and its like must not be led by a repository's or a project's settings to
# run something, ask for something, or write. Commands are run with these, whatever else is in their environment.
SAFE_ENVIRONMENT: Mapping[str, str] = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "safe.bareRepository",
    "GIT_CONFIG_VALUE_1": "explicit",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GOTOOLCHAIN": "local",
}

_REFUSED = re.compile(
    r"(LD|DYLD|PYTHON|PERL5?|RUBY|BASH|GIT|NODE|NPM|LESS|LUA|SHELL|PROMPT|GLOB|COMP|HIST|JAVA|JDK|GO|MAN|MAIL|XDG|SSH|PS[0-4]"
    r"|DOCKER|KUBE|CARGO|RUST|PHP|GCONV|MALLOC|GLIBC|RIPGREP|SYSTEMD|TERM|READLINE|MAKE|CMAKE|PIP|UV|POETRY|CONDA|GEM|AWK"
    r"|BUNDLE|SUDO|OPENSSL|JQ|GZIP|BZIP|XZ|ZSTD|TAR|PYENV|LANG|LC_|ASAN|LSAN|VIRTUAL|HTTP|ALL_PROXY|ZDOT|_).*"
    r"|PATH|IFS|ENV|CDPATH|HOME|PWD|OLDPWD|USER|LOGNAME|UID|EUID|PPID|GROUPS|EXECIGNORE|FIGNORE|FUNCNEST|INPUTRC|DIRSTACK"
    r"|POSIXLY_CORRECT|OPTIND|OPTARG|TMOUT|TIMEFORMAT|BROWSER|VISUAL|GREP_OPTIONS|LOCPATH|NLSPATH|TMPDIR|TMP|TEMP|FPATH"
    r"|FCEDIT|CC|CXX|CPP|AR|LINKER|CFLAGS|CXXFLAGS|LDFLAGS|MFLAGS|RANDOM|SECONDS|LINENO|RES_OPTIONS|HOSTALIASES|HOSTFILE"
    r"|LOCALDOMAIN|R_.*|.*(PAGER|EDITOR|ASKPASS|COMMAND|RC|_PROXY)|histchars|auto_resume|.*_proxy|npm_config_.*"
)
# In other encodings than UTF-8 a shell reads other words than this package does.
_HARMLESS = re.compile(
    r"(LANG|LC_[A-Z]+)=(C|POSIX|\w+\.(UTF-8|utf8))?|TZ=(\w[\w/]*)?"
    r"|(COLUMNS|LINES|NO_COLOR|CLICOLOR(_FORCE)?|FORCE_COLOR|CI)=\w*"
)


def is_refused_variable(name: str) -> bool:
    """Whether a variable of this name can change what a loader, an interpreter, a shell or a tool runs or reads."""
    return not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or _REFUSED.fullmatch(name) is not None


def is_harmless_variable(name: str, value: str) -> bool:
    """Whether any command may be given this variable: language, time zone, width, colours."""
    return _HARMLESS.fullmatch(f"{name}={value}") is not None


def a_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())
