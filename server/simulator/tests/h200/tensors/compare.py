#!/usr/bin/env python3
"""Compares two files that `tensors` wrote, line by line: `compare.py H200.bin SIM.bin [--all]`. `compare.py --record H200.bin` writes
what `tensors.txt` is.

For each line and kind that differs (with --all: for each): how many tiles are equal by their hashes, and of the first results, which the files
hold as they are, how many are equal bit by bit, the largest distance in units in the last place, and how many are NaN in one alone.
"""
import struct
import sys

WIDTHS = {"f16": (2, 5), "f32": (4, 8), "f64": (8, 11), "s32": (4, 0)}


def read(path):
    lines = {}
    with open(path, "rb") as file:
        while head := file.readline():
            name, kind, tiles, size, kept = head.decode().split()
            hashes = struct.unpack(f"<{tiles}I", file.read(4 * int(tiles)))
            lines[name, kind] = (hashes, int(size), file.read(int(kept)))
    return lines


def result_type(name):
    words = name.split(".")
    if "fragments" in words:
        return "s32"
    return next((word for word in words if word in WIDTHS), "s32")


def numbers(data, width):
    return struct.unpack(f"<{len(data) // width}{ {2: 'H', 4: 'I', 8: 'Q'}[width]}", data)


def ordered(bits, width):
    """Neighbouring numbers are neighbouring whole numbers."""
    top = 1 << (8 * width - 1)
    return top - bits if bits & top else bits


def is_nan(bits, width, exponent):
    if not exponent:
        return False
    mantissa = 8 * width - 1 - exponent
    magnitude = bits & ((1 << (8 * width - 1)) - 1)
    return magnitude > ((1 << exponent) - 1) << mantissa


def folded(hashes):
    """FNV-1a of the hashes' bytes, its halves together."""
    value = 0xCBF29CE484222325
    for byte in struct.pack(f"<{len(hashes)}I", *hashes):
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return (value ^ value >> 32) % (1 << 32)


def record(path):
    print("# The line, the kind of its inputs, a hash of the hashes of all tiles, and of the first eight.")
    for (name, kind), (hashes, _, _) in read(path).items():
        print(f"{name} {kind} {folded(hashes):08x} {folded(hashes[:8]):08x}")


def main():
    if sys.argv[1] == "--record":
        return record(sys.argv[2])
    first, second = read(sys.argv[1]), read(sys.argv[2])
    everything = "--all" in sys.argv
    equal_lines = 0
    for key, (hashes, _, data) in first.items():
        if key not in second:
            print(*key, "is in the first alone")
            continue
        others, _, other = second[key]
        tiles = sum(a == b for a, b in zip(hashes, others))
        if tiles == len(hashes):
            equal_lines += 1
            if not everything:
                continue
        width, exponent = WIDTHS[result_type(key[0])]
        pairs = list(zip(numbers(data, width), numbers(other, width)))
        equal = sum(a == b for a, b in pairs)
        nan = [(is_nan(a, width, exponent), is_nan(b, width, exponent)) for a, b in pairs]
        apart = [abs(ordered(a, width) - ordered(b, width)) for (a, b), n in zip(pairs, nan) if not any(n)]
        one_nan = sum(a != b for a, b in nan)
        other_nan = sum(a and b and p[0] != p[1] for (a, b), p in zip(nan, pairs))
        print(
            f"{key[0]} {key[1]}: tiles {tiles}/{len(hashes)}, values {equal}/{len(pairs)}"
            f", at most {max(apart, default=0)} ulp, NaN in one {one_nan}, other NaN {other_nan}"
        )
    for key in second.keys() - first.keys():
        print(*key, "is in the second alone")
    print(f"{equal_lines} of {len(first)} lines are equal")


main()
