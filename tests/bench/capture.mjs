// The peer of a capture: node's child_process, its output copied into a ring of 1 MiB.
//
//     node capture.mjs EXPECTED_BYTES PROGRAM [ARGUMENT...]
//
// Prints the nanoseconds from the start to the end of the command.
import { spawn } from "node:child_process";

const expected = Number(process.argv[2]);
const [program, ...args] = process.argv.slice(3);
const ring = Buffer.alloc(1 << 20);
let total = 0;

function fail(what) {
  console.error(`bench: ${what}`);
  process.exit(1);
}

const began = process.hrtime.bigint();
const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env: {} });
child.stdout.on("data", (bytes) => {
  for (let done = 0; done < bytes.length; ) {
    const at = total % ring.length;
    const n = bytes.copy(ring, at, done);
    done += n;
    total += n;
  }
});
child.on("error", (error) => fail(error.message));
child.on("close", (code) => {
  if (code !== 0) fail(`did not exit with 0: ${program}`);
  if (total !== expected) fail("output is not what it should be");
  console.log(String(process.hrtime.bigint() - began));
});
