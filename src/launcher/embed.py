"""Writes an assembler file that includes a program's bytes as coop_launcher_image … coop_launcher_image_end."""
import os
import sys

program, output = sys.argv[1:]
with open(output, "w") as out:
    out.write(
        f"""\t.section .rodata
\t.balign 16
\t.global coop_launcher_image
\t.global coop_launcher_image_end
coop_launcher_image:
\t.incbin "{os.path.abspath(program)}"
coop_launcher_image_end:
\t.byte 0
\t.section .note.GNU-stack,"",%progbits
"""
    )
