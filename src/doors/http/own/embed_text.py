"""Writes a text file as the C array that a name stands for: embed_text.py INPUT OUTPUT NAME. A NUL ends it."""
import sys

source, output, name = sys.argv[1:]
with open(source, "rb") as text:
    data = text.read() + b"\0"
with open(output, "w", encoding="ascii") as out:
    out.write(f"extern const char {name}[];\nconst char {name}[] = {{\n")
    for at in range(0, len(data), 16):
        out.write("\t" + " ".join(f"{byte - 256 if byte > 127 else byte}," for byte in data[at : at + 16]) + "\n")
    out.write("};\n")
