"""NVIDIA instructions that Triton does not expose: counters in shared memory, and loads of two
adjacent numbers.

Up to `_MOST_SHARED` counters of a program are in shared memory. On other GPUs, in Triton's
interpreter, and with more counters, programs add to global memory. Both give the same counts. A
program must process at least as many rows at a time as it has threads; otherwise Triton assigns a
row to several threads, and each would add it.
"""

from __future__ import annotations

import os
from typing import Any

import torch
import triton
import triton.language as tl

from calibrant.params.tensors import DeviceArray

_MOST_SHARED = 8192
"""The largest number of groups counted in shared memory: 4 bytes each, and a program has 48 KB."""

_MANY_GROUPS = 1 << 21
"""Total number of counters in global memory. Each group has several, so that fewer programs add to
the same counter.
"""

_COUNT_WARPS = 8
_COUNT_PROGRAMS = 1056
"""Programs that count: 8 for each multiprocessor of an H200."""


@triton.jit
def _shared_counters(SIZE: tl.constexpr):
    """The address of SIZE counters in shared memory; SIZE is a string."""
    declared: tl.constexpr = ".shared .align 16 .b32 counters[" + SIZE + "];"
    asm: tl.constexpr = declared + " mov.u32 $0, counters;"
    return tl.inline_asm_elementwise(asm, "=r", [], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def _write_shared(address, words):
    """Write words of 32 bits."""
    asm: tl.constexpr = "st.shared.u32 [$1], $2; mov.u32 $0, 0;"
    tl.inline_asm_elementwise(
        asm, "=r,r,r", [address, words], dtype=tl.int32, is_pure=False, pack=1
    )


@triton.jit
def _add_shared(address, amount):
    """Add to counters; several threads may add to the same one."""
    asm: tl.constexpr = "red.shared.add.u32 [$1], $2; mov.u32 $0, 0;"
    tl.inline_asm_elementwise(
        asm, "=r,r,r", [address, amount], dtype=tl.int32, is_pure=False, pack=1
    )


@triton.jit
def _read_shared(address):
    """Read counters."""
    asm: tl.constexpr = "ld.shared.u32 $0, [$1];"
    return tl.inline_asm_elementwise(asm, "=r,r", [address], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def begin_counting(GROUPS: tl.constexpr, SHARED: tl.constexpr):
    """Prepare the program's counters, if they are in shared memory."""
    counters = 0
    if SHARED is not None:
        counters = _shared_counters(SHARED)
        _write_shared(counters + 4 * tl.arange(0, GROUPS), tl.zeros((GROUPS,), tl.int32))
        tl.debug_barrier()
    return counters


@triton.jit
def count_rows(group, there, own, counters, SHARED: tl.constexpr):
    """Add one to the groups of the rows present."""
    if SHARED is not None:
        _add_shared(counters + 4 * tl.where(there, group, 0), there.to(tl.int32))
    else:
        tl.atomic_add(own + group, 1, mask=there, sem="relaxed")


@triton.jit
def end_counting(own, counters, GROUPS: tl.constexpr, SHARED: tl.constexpr):
    """Write the counts from shared memory to global memory."""
    if SHARED is not None:
        tl.debug_barrier()
        bins = tl.arange(0, GROUPS)
        tl.store(own + bins, _read_shared(counters + 4 * bins))


@triton.jit
def load_pair(pointer, NVIDIA: tl.constexpr):
    """Load a double and the next one; the first must have an even index."""
    if NVIDIA:
        asm: tl.constexpr = "ld.global.nc.v2.f64 {$0, $1}, [$2];"
        both: tl.constexpr = (tl.float64, tl.float64)
        first, second = tl.inline_asm_elementwise(
            asm, "=d,=d,l", [pointer.to(tl.int64)], dtype=both, is_pure=True, pack=1
        )
    else:
        first = tl.load(pointer)
        second = tl.load(pointer + 1)
    return first, second


def counters_of(
    size: int, rows: int, block: int, device: Any
) -> tuple[DeviceArray, dict[str, Any], int]:
    """Counters of `size` groups, constants of the programs that count `rows` rows, and how many
    programs there are.
    """
    groups = triton.next_power_of_2(size)
    programs = min(_COUNT_PROGRAMS, triton.cdiv(rows, block))
    # the number as a string, because it becomes part of an instruction
    shared = str(groups) if groups <= _MOST_SHARED and is_nvidia(device) else None
    most = max(1, _MANY_GROUPS // groups)
    copies = programs if shared is not None else min(programs, most)
    counts = torch.zeros(copies, groups, dtype=torch.int32, device=device)
    constants = {
        "COPIES": copies,
        "GROUPS": groups,
        "SHARED": shared,
        "BLOCK": block,
        "num_warps": _COUNT_WARPS,
    }
    return counts, constants, programs


def is_nvidia(device: Any) -> bool:
    """Whether NVIDIA's instructions run on this device."""
    interpreted = os.environ.get("TRITON_INTERPRET", "0") == "1"
    return device.type == "cuda" and torch.version.hip is None and not interpreted
