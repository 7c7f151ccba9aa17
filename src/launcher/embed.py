"""Writes an assembler file that includes a program's bytes as NAME … NAME_end."""
import os
import sys

program, output, name = sys.argv[1:]
with open(output, "w") as out:
    out.write(
        f"""\t.section .rodata
\t.balign 16
\t.global {name}
\t.global {name}_end
{name}:
\t.incbin "{os.path.abspath(program)}"
{name}_end:
\t.byte 0
\t.section .note.GNU-stack,"",%progbits
"""
    )
