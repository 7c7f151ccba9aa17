// The peer of the fan-out: the same server as fanout_floor, by node's child_process and the package ws.
//
//     node fanout.mjs FOLDER-WITH-WS OUTPUT SUBSCRIBERS PROGRAM [ARGUMENT...]
//
// Prints its port. Each piece of output is encoded once, and sent to all. OUTPUT is "-", or a FIFO to be the program's stdout: what node
// calls a pipe is a socket, on which writes cannot be kept apart.
import { spawn } from "node:child_process";
import { constants, openSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { Socket } from "node:net";

const [folder, output, count, program, ...args] = process.argv.slice(2);
const { WebSocketServer } = createRequire(`${folder}/`)("ws");

function fail(what) {
  console.error(`bench: ${what}`);
  process.exit(1);
}

const clients = [];
let cursor = 0;
const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false });
const reader = output === "-" ? null : openSync(output, constants.O_RDONLY | constants.O_NONBLOCK);
const writer = output === "-" ? "pipe" : openSync(output, constants.O_WRONLY);
const child = spawn(program, args, { stdio: ["ignore", writer, "inherit"] });
const source = reader === null ? child.stdout : new Socket({ fd: reader, readable: true, writable: false });

function send(text) {
  const bytes = Buffer.from(text, "latin1");
  for (const client of clients) client.send(bytes, { binary: false });
}

child.on("error", (error) => fail(error.message));
source.on("data", (chunk) => {
  if (chunk[0] === 0) return ended();
  send(`{"type":"stdout","cursor":${cursor++},"pid":"psh-01234567-1","data":"${chunk.toString("base64")}"}`);
});
let open = 2; // the output, and the program
function ended() {
  if (--open === 0) send(`{"type":"exit","cursor":${cursor},"exit_code":0}`);
}
source.on("end", ended);
child.on("exit", (code) => {
  if (code !== 0) fail(`did not exit with 0: ${program}`);
  // Node takes a hang-up for the end although there are packets left in a pipe: it is kept open, and a packet tells of the end.
  if (reader !== null) writeSync(writer, "\0");
  ended();
});
let left = Number(count);
server.on("connection", (client) => {
  client.send('{"type":"started"}');
  clients.push(client);
  client.on("error", () => {});
  client.on("close", () => {
    if (--left === 0) process.exit(0);
  });
});
server.on("listening", () => console.log(server.address().port));
