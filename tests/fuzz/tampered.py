"""Saved models that were changed: bytes, the header, the numbers, the metadata."""

import json
import struct
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

KEY = "transformist"
STRANGE = [
    None, True, False, 0, 1, -1, 2, 3, 10**6, 10**12, 10**400, -(10**30), 0.5, 1e308, 1e-320, "",
    "a", "1/0", "1/3", "1e400", "nan", "NaN", "inf", "softmax", "average-hard", "future", "none",
    "F64", "F32", "I8", "BF16", "BOS", "\ud800", "[red]", "a\nb", "a" * 3000, [], [[]], [0],
    [1, 2], [0, 10**15], {}, {"a": 1}, [None] * 50, "os.system", "eval", "builtins.eval",
    "subprocess.Popen", "Transformer", "Attention", "Binary", "Embedding", "Sinusoids", "float32",
    "exact", "interval", "reference", "structured", "any", "i/n", "(-1)^i", "tensor",
]  # fmt: skip
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, 1 / 3, 1e-300, 5e-324, 1e300, 1.7976931348623157e308, 1e16,
           float("nan"), float("inf"), float("-inf"), 2.0**-60, 3e38, 65504.0, 448.0]  # fmt: skip


@dataclass(frozen=True)
class Tampered:
    """The bytes of a saved model after edits, and what the edits were."""

    name: str
    edits: tuple[str, ...]
    data: bytes

    def __repr__(self):
        return f"{self.name} after {'; '.join(self.edits)}"


def split(data):
    """The header of a safetensors file as a value, and the bytes after it."""
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def joined(header, rest):
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + rest


def places(value, path=()):
    """The path of every part of a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(each, (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


@st.composite
def changed_json(draw, value):
    """The value with one part replaced, left out, doubled, or exchanged; and what was done."""
    if not isinstance(value, dict | list):
        return draw(st.sampled_from(STRANGE)), "replaced"
    value = json.loads(json.dumps(value))
    path = draw(st.sampled_from([each for each in places(value) if each] or [()]))
    if not path:
        return draw(st.sampled_from(STRANGE)), "replaced"
    holder, key = at(value, path[:-1]), path[-1]
    how = draw(
        st.sampled_from(["replace"] * 4 + ["leave out", "exchange", "double", "add", "near"])
    )
    if how == "leave out":
        del holder[key]
    elif how == "exchange":
        other = at(value, draw(st.sampled_from([each for each in places(value) if each])))
        holder[key] = json.loads(json.dumps(other))
    elif how == "double" and isinstance(holder, list):
        holder.append(holder[key])
    elif how == "add" and isinstance(holder, dict):
        holder[draw(st.sampled_from(["a", "__class__", "__init__", "kind", "self", ""]))] = 1
    elif how == "near" and type(holder[key]) is int:
        holder[key] += draw(st.sampled_from([-1, 1, 7, 10**9]))
    else:
        how = "replace"
        holder[key] = draw(st.sampled_from(STRANGE))
    return value, f"{how} {'.'.join(map(str, path))} -> {str(holder)[:80]}"


@st.composite
def edited(draw, data):
    """One edit, and its name."""
    described = {}
    kind = draw(st.sampled_from(
        ["byte", "cut", "insert", "length", "header", "number", "number", "metadata", "metadata",
         "metadata"]))  # fmt: skip
    try:
        header, rest = split(data)
        described = json.loads(header["__metadata__"][KEY])
    except (ValueError, LookupError, TypeError, AttributeError):
        kind = kind if kind in ("byte", "cut", "insert", "length") else "byte"
    if kind in ("byte", "cut", "insert"):
        place = draw(st.integers(0, len(data)))
        more = draw(st.binary(min_size=1, max_size=4))
        if kind == "cut":
            return data[:place], f"cut at {place}"
        after = place + (len(more) if kind == "byte" else 0)
        return data[:place] + more + data[after:], f"{kind} {more!r} at {place}"
    if kind == "length":
        length = draw(st.sampled_from([0, 1, 7, 2**31, 2**32, 2**63, 2**64 - 1, len(data), 10**8]))
        return length.to_bytes(8, "little") + data[8:], f"header length {length}"
    if kind == "header":
        header, what = draw(changed_json(header))
        return joined(header, rest), f"header: {what}"
    if kind == "number" and len(rest) >= 8:
        place = 8 * draw(st.integers(0, len(rest) // 8 - 1))
        number = draw(st.sampled_from(NUMBERS))
        rest = rest[:place] + struct.pack("<d", number) + rest[place + 8 :]
        return joined(header, rest), f"number {place // 8} = {number}"
    described, what = draw(changed_json(described))
    header["__metadata__"][KEY] = json.dumps(described)
    return joined(header, rest), f"metadata: {what}"


@st.composite
def tampered(draw, directory, names):
    """One of the saved models by name, after one to three edits."""
    name = draw(st.sampled_from(names))
    data, edits = Path(directory, name).read_bytes(), ()
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        data, what = draw(edited(data))
        edits = (*edits, what)
    return Tampered(name, edits, data)
