"""Sections of accounts whose times are a test's own."""

from typing import Any, TypeVar

from channels.settings import AccountSection

S = TypeVar("S", bound=AccountSection)


def account(kind: type[S], **given: Any) -> S:
    """An account of that kind; what is given and is no key of its section takes the place of a class attribute."""
    fixed = {name: given.pop(name) for name in list(given) if name not in kind.model_fields}
    unknown = [name for name in fixed if not hasattr(kind, name)]
    assert not unknown, unknown
    return type(kind.__name__, (kind,), fixed)(**given)
