"""How much memory a value holds, with everything that can be reached from it."""

import gc
import sys
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def held_by(value: object) -> int:
    """Bytes of a value and of all that only data leads to: classes, functions and modules are not counted."""
    seen: dict[int, object] = {}
    found = [value]
    while found:
        found = [one for one in found if id(one) not in seen and not isinstance(one, _SHARED)]
        seen.update((id(one), one) for one in found)
        found = gc.get_referents(*found)
    return sum(sys.getsizeof(one) for one in seen.values())
