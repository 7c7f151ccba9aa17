// The peer of the gateway: a WebSocket for each process, by node's child_process and the package ws.
//
//     node door.mjs FOLDER-WITH-WS
//
// Prints its port. Takes the same first frame, and sends frames of the same kind until the process has ended.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";

const { WebSocketServer } = createRequire(`${process.argv[2]}/`)("ws");
const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false });

server.on("connection", (client) => {
  let cursor = 0;
  const send = (message) => client.send(JSON.stringify(message));
  client.on("error", () => {});
  client.once("message", (text) => {
    const start = JSON.parse(text);
    const child = spawn(start.cmd, start.args ?? [], { stdio: ["ignore", "pipe", "pipe"] });
    const pid = String(child.pid);
    send({ type: "started", pid });
    for (const type of ["stdout", "stderr"]) {
      child[type].on("data", (chunk) => send({ type, cursor: cursor++, pid, data: chunk.toString("base64") }));
    }
    child.on("error", (error) => send({ type: "error", message: error.message }));
    child.on("close", (code) => {
      send({ type: "exit", exit_code: code, cursor, pid });
      client.close(1000);
    });
  });
});
server.on("listening", () => console.log(server.address().port));
