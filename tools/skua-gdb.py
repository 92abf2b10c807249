# SPDX-License-Identifier: MIT
"""Tasks of Skua in gdb, of a running program or a core file:

    (gdb) source tools/skua-gdb.py
    (gdb) info skua-tasks              all tasks: PID, type, what each does, and where
    (gdb) skua-task 0001000000000001   the backtrace of one
    (gdb) skua-task 1000000000001 -full 3   the same, with options of `backtrace`

It needs the debug information of libskua. A task that runs is on the stack of its worker: there
the plain `backtrace` shows it, as it shows any function."""

import re

import gdb
from gdb.unwinder import Unwinder, register_unwinder

RECORD_SIZE = 512  # STACK_RECORD of src/task/stacks.h
WAITS = {0: "has not waited", 1: "receives", 2: "receives a type", 3: "receives a match",
         4: "waits", 5: "pauses"}

# The frame of skua_switch_ (skua/switch.h): which registers lie where, and what the stack pointer
# is without it.
SWITCHES = {
    "x86-64": ({"rip": 0, "rbx": 8, "rbp": 16}, "rsp", 24 + 128, 0),
    "aarch64": ({"x19": 0, "x29": 8, "pc": 16}, "sp", 32, 16),
}


def architecture():
    name = gdb.selected_inferior().architecture().name()
    return "aarch64" if name.startswith("aarch64") else "x86-64"


def guard_size():
    return 64 << 10 if architecture() == "aarch64" else 4096


# ---- finding tasks ----

def schedulers():
    """Those that some thread works for."""
    selected = gdb.selected_thread()
    if selected is None:
        raise gdb.GdbError("The program is not being run.")
    found = {}
    try:
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            for symbol in gdb.lookup_static_symbols("current"):
                if str(symbol.type) != "struct worker *":
                    continue
                worker = symbol.value()
                if int(worker) != 0:
                    found[int(worker["sched"])] = worker["sched"]
    finally:
        selected.switch()
    return list(found.values())


def plain(value):
    """The value of an atomic variable, or of any other."""
    return value.cast(value.type.strip_typedefs().unqualified())


def records(scheduler):
    """Every stack that has ever been used, as a task."""
    task_type = gdb.lookup_type("struct task").pointer()
    stacks = scheduler["stacks"]
    for tier in range(4):
        of = stacks["tiers"][tier]
        start = int(plain(of["start"]))
        size = (16 << 10 << (2 * tier)) + guard_size()
        for slot in range(int(of["used"]) if start != 0 else 0):
            yield gdb.Value(start + (slot + 1) * size - RECORD_SIZE).cast(task_type)


def tasks():
    """Those that are alive: the process of a stack that is not in use has another, or none."""
    for scheduler in schedulers():
        for task in records(scheduler):
            process = task["context"]["process"]
            if int(process) == 0 or int(process["state"]["of_task"]["task"]) != int(task):
                continue
            kind = plain(process["type"])
            if int(kind) != 0 and int(kind["step"]) == 0:
                yield task, kind


def pid_of(task):
    return int(task["context"]["self"]["bits"])


def is_running(task):
    return int(task["context"]["wait"]["peer"]) != 0


def where(task):
    text = task["context"]["wait"]["where"]
    return text.string(errors="replace") if int(text) != 0 else "-"


def find(pid):
    for task, _ in tasks():
        if pid_of(task) == pid:
            return task
    raise gdb.GdbError(f"No task has the PID {pid:016x}; `info skua-tasks` lists them.")


# ---- the backtrace of a task that waits ----

class Detour(Unwinder):
    """Lets the innermost frame of the selected thread look as if a task had called it."""

    def __init__(self):
        super().__init__("skua-task")
        self.frame = None  # where skua_switch_ has left the registers; None: no detour

    def __call__(self, pending):
        if self.frame is None or pending.level() != 0:
            return None
        registers, stack_pointer, size, pc_at = SWITCHES[architecture()]
        frame = gdb.Value(self.frame)
        word = gdb.lookup_type("unsigned long")

        def at(offset):
            return gdb.Value(self.frame + offset).cast(word.pointer()).dereference()

        info = pending.create_unwind_info(FrameId(frame, at(pc_at)))
        for name, offset in registers.items():
            info.add_saved_register(name, at(offset))
        info.add_saved_register(stack_pointer, (frame + size).cast(word))
        return info


class FrameId:
    """Not outside of the task's stack, or gdb takes that for a broken one."""

    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


DETOUR = Detour()
register_unwinder(None, DETOUR, replace=True)


def backtrace(task, options):
    """Without the frame that the detour begins at."""
    DETOUR.frame = int(task["stack"]["peer"])
    gdb.invalidate_cached_frames()
    try:
        text = gdb.execute("backtrace " + options, to_string=True)
    finally:
        DETOUR.frame = None
        gdb.invalidate_cached_frames()
    lines = text.splitlines(keepends=True)
    begin = next((i for i, line in enumerate(lines) if re.match(r"#1\s", line)), len(lines))
    for line in lines[begin:]:
        number = re.match(r"#(\d+)( +)", line)
        if number:
            line = f"#{int(number.group(1)) - 1:<3}" + line[number.end():]
        gdb.write(line)


# ---- commands ----

class InfoTasks(gdb.Command):
    """All tasks: PID, type, what each does, and where."""

    def __init__(self):
        super().__init__("info skua-tasks", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        count = 0
        for task, kind in tasks():
            if count == 0:
                gdb.write(f"{'PID':16}  {'TYPE':16}  {'DOES':16}  WHERE\n")
            count += 1
            does = "runs" if is_running(task) else WAITS.get(
                int(task["context"]["wait"]["kind"]), "waits")
            name = kind["name"].string(errors="replace")
            gdb.write(f"{pid_of(task):016x}  {name:16}  {does:16}  {where(task)}\n")
        if count == 0:
            gdb.write("No tasks.\n")


class TaskBacktrace(gdb.Command):
    """The backtrace of a task that waits: skua-task PID [options of backtrace]"""

    def __init__(self):
        super().__init__("skua-task", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        words = argument.split(maxsplit=1)
        try:
            pid = int(words[0], 16)
        except (IndexError, ValueError):
            raise gdb.GdbError("usage: skua-task PID [options of backtrace]") from None
        task = find(pid)
        if is_running(task):
            raise gdb.GdbError("The task runs: `thread apply all backtrace` has it.")
        backtrace(task, words[1] if len(words) > 1 else "")


InfoTasks()
TaskBacktrace()
