// The peer of a spawn: the same work as spawn_coop, done by node's child_process.
//
//     node spawn.mjs WIDTH COUNT OUTPUT_BYTES PROGRAM [ARGUMENT...]
//
// Prints the nanoseconds it took.
import { spawn } from "node:child_process";

const [width, count, output] = process.argv.slice(2, 5).map(Number);
const [program, ...args] = process.argv.slice(5);
let left = count;
let running = 0;

function fail(what) {
  console.error(`bench: ${what}`);
  process.exit(1);
}

function start() {
  left--;
  running++;
  let size = 0;
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env: {} });
  child.stdout.on("data", (bytes) => (size += bytes.length));
  child.stderr.on("data", (bytes) => (size += bytes.length));
  child.on("error", (error) => fail(error.message));
  child.on("close", (code) => {
    if (code !== 0) fail(`did not exit with 0: ${program}`);
    if (size !== output) fail("output is not what it should be");
    running--;
    if (left) start();
    else if (!running) console.log(String(process.hrtime.bigint() - began));
  });
}

const began = process.hrtime.bigint();
for (let i = 0; i < width && left; i++) start();
