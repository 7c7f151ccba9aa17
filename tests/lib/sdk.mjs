// An imitation of the public TypeScript client of /runtime/v1 (0.1.70), for node 20 without any package.
//
// Requests go through fetch, which keeps connections. The WebSocket is our own and offers permessage-deflate as the client's does. Acks are
// matched by their type in the order they come; a socket that ends before `exit` is attached to again, twelve times; what comes before
// `started` is thrown away, the text of an `error` too. What the client does not check, but would get wrong, ends in a Misread.
//
// Driven by lines of JSON on stdin, {"id", "op", "args"}; each is answered by a line {"id", "value"} or {"id", "error"}.
import crypto from 'node:crypto'
import net from 'node:net'
import readline from 'node:readline'

const RECONNECTS = 12
const REQUEST_TIMEOUT_MS = 60_000
const PING_MS = 50_000

class SdkError extends Error {
  constructor(kind, message, more = {}) {
    super(message)
    this.kind = kind
    Object.assign(this, more)
  }
}
const misread = (why) => { throw new SdkError('Misread', why) }
const shown = (value) => JSON.stringify(value).slice(0, 300)
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

const KINDS = { 400: 'InvalidArgument', 422: 'InvalidArgument', 401: 'Authentication', 403: 'Authentication', 404: 'NotFound',
  408: 'Timeout', 504: 'Timeout', 409: 'Conflict', 429: 'RateLimit', 503: 'SandboxOverloaded' }

function errorOf(status, body) {
  const code = body?.error
  if (typeof body?.message !== 'string' || !body.message) misread(`no message in ${JSON.stringify(body)}`)
  let kind = KINDS[status] ?? 'Api'
  if (code === 'file_not_found' && status === 404) kind = 'FileNotFound'
  if (code === 'not_enough_space') kind = 'NotEnoughSpace'
  return new SdkError(kind, body.message, { status })
}

// What a URL makes of a path: dots are folded, so such an id is another one for the server.
function withQuery(path, params) {
  const url = new URL(path, 'https://placeholder.local')
  for (const [name, value] of Object.entries(params)) if (value !== undefined && value !== null) url.searchParams.set(name, String(value))
  return url.pathname + url.search
}

class Http {
  constructor(url, token) {
    this.url = url.replace(/\/+$/, '')
    this.token = token
  }

  async raw(method, path, { json, body, headers } = {}) {
    const given = { Authorization: `Bearer ${this.token}`, ...(json ? { 'content-type': 'application/json' } : {}), ...headers }
    const response = await fetch(this.url + path, { method, headers: given, body: json ? JSON.stringify(json) : body, redirect: 'error' })
    if (!response.ok) {
      const text = await response.text()
      let found
      try { found = JSON.parse(text) } catch { misread(`an error that is no JSON: ${text}`) }
      throw errorOf(response.status, found)
    }
    return response
  }

  async json(method, path, options) {
    const text = await (await this.raw(method, path, options)).text()
    return text ? JSON.parse(text) : {}
  }
}

// One WebSocket, frame by frame.
class Socket {
  static open(url, token, path, via) {
    const target = new URL(path, url.replace(/^http/, 'ws'))
    const socket = new Socket()
    return new Promise((resolve, reject) => {
      const key = crypto.randomBytes(16).toString('base64')
      const fail = (why) => { socket.tcp.destroy(); reject(new SdkError('Sandbox', why)) }
      socket.onopen = () => resolve(socket)
      socket.onrefused = (why) => fail(`process websocket failed to connect: ${why}`)
      socket.key = key
      socket.tcp = net.connect(via ?? { host: target.hostname, port: Number(target.port) }, () => {
        socket.tcp.write(`GET ${target.pathname}${target.search} HTTP/1.1\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n`
          + `Connection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer ${token}\r\n`
          + `Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\nHost: ${target.host}\r\n\r\n`)
      })
      socket.tcp.on('data', (data) => {
        try { socket.feed(data) } catch (error) { socket.broken = error; socket.tcp.destroy() }
      })
      socket.tcp.on('error', (error) => { if (!socket.opened) fail(`process websocket failed to connect: ${error.message}`) })
      socket.tcp.on('close', () => { if (socket.opened) socket.end(); else fail('process websocket failed to connect: ended') })
    })
  }

  constructor() {
    this.buffer = Buffer.alloc(0)
    this.opened = false
    this.queue = []
    this.waiters = []
    this.acks = { stdin_ack: [], close_stdin_ack: [] }
    this.closed = false
    this.keepalive = setInterval(() => { if (this.opened && !this.closed) this.frame(9, Buffer.from('watasu-sdk')) }, PING_MS)
  }

  feed(data) {
    this.buffer = Buffer.concat([this.buffer, data])
    if (!this.opened) {
      const end = this.buffer.indexOf('\r\n\r\n')
      if (end < 0) return
      const lines = this.buffer.subarray(0, end).toString('latin1').split('\r\n')
      if (!lines[0].startsWith('HTTP/1.1 101')) return this.onrefused(lines[0])
      const pairs = lines.slice(1).map((line) => [line.split(':')[0].toLowerCase(), line.slice(line.indexOf(':') + 1).trim()])
      const headers = Object.fromEntries(pairs)
      const accept = crypto.createHash('sha1').update(this.key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64')
      if (headers['sec-websocket-accept'] !== accept || headers.upgrade?.toLowerCase() !== 'websocket') return this.onrefused('wrong answer')
      if ('sec-websocket-extensions' in headers) return this.onrefused('an extension that was not agreed on')
      this.buffer = this.buffer.subarray(end + 4)
      this.opened = true
      this.onopen()
    }
    while (this.take()) { /* one frame each */ }
  }

  take() {
    const b = this.buffer
    if (b.length < 2) return false
    let [size, start] = [b[1] & 127, 2]
    if (b[0] & 0x70 || !(b[0] & 0x80) || b[1] & 0x80) misread(`frame header ${b[0]} ${b[1]}`)
    if (size === 126) { if (b.length < 4) return false; size = b.readUInt16BE(2); start = 4 }
    else if (size === 127) { if (b.length < 10) return false; size = Number(b.readBigUInt64BE(2)); start = 10 }
    if (size > 256 * 1024) misread(`message of ${size} bytes`)
    if (b.length < start + size) return false
    const payload = Buffer.from(b.subarray(start, start + size))
    this.buffer = b.subarray(start + size)
    this.received(b[0] & 15, payload)
    return true
  }

  received(opcode, payload) {
    if (opcode === 9) this.frame(10, payload)
    else if (opcode === 8) { if (!this.sentClose) this.frame(8, payload.subarray(0, 2)); this.sentClose = true; this.tcp.end(); this.end() }
    else if (opcode === 1) this.message(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload)))
    else if (opcode !== 10) misread(`frame of kind ${opcode}`)
  }

  frame(opcode, payload) {
    const mask = crypto.randomBytes(4)
    const size = payload.length
    const head = Buffer.alloc(size < 126 ? 2 : size < 65536 ? 4 : 10)
    head[0] = 0x80 | opcode
    head[1] = 0x80 | (size < 126 ? size : size < 65536 ? 126 : 127)
    if (head.length === 4) head.writeUInt16BE(size, 2)
    if (head.length === 10) head.writeBigUInt64BE(BigInt(size), 2)
    const hidden = Buffer.from(payload)
    for (let i = 0; i < hidden.length; i += 1) hidden[i] ^= mask[i & 3]
    if (this.tcp.writable) this.tcp.write(Buffer.concat([head, mask, hidden]))
  }

  message(frame) {
    if (frame.type === 'ready') return
    if (frame.type in this.acks) { this.acks[frame.type].shift()?.resolve(); return }
    if (frame.type === 'error') { this.end(new SdkError('Sandbox', String(frame.message ?? frame.code))); return }
    this.push(frame)
  }

  push(frame) {
    const waiter = this.waiters.shift()
    if (waiter) waiter(frame)
    else this.queue.push(frame)
  }

  end(error = this.broken) {
    this.closed = true
    clearInterval(this.keepalive)
    if (error) this.push({ type: 'error', message: error.message, kind: error.kind })
    for (const list of Object.values(this.acks)) {
      for (const entry of list.splice(0)) entry.reject(error ?? new SdkError('Sandbox', 'process websocket closed before acknowledgement'))
    }
    for (const waiter of this.waiters.splice(0)) waiter(undefined)
  }

  next() {
    if (this.queue.length) return Promise.resolve(this.queue.shift())
    if (this.closed) return Promise.resolve(undefined)
    return new Promise((resolve) => this.waiters.push(resolve))
  }

  send(message) {
    if (!this.tcp.writable || this.closed) throw new SdkError('Sandbox', 'process websocket is not connected')
    this.frame(1, Buffer.from(JSON.stringify(message)))
  }

  async acked(type, message) {
    const done = new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new SdkError('Timeout', `no ${type}`)), REQUEST_TIMEOUT_MS)
      const settle = (then) => (value) => { clearTimeout(timer); then(value) }
      this.acks[type].push({ resolve: settle(resolve), reject: settle(reject) })
    })
    this.send(message)
    await done
  }

  stdin(data) { return this.acked('stdin_ack', { type: 'stdin', data: data.toString('base64') }) }
  closeStdin() { return this.acked('close_stdin_ack', { type: 'close_stdin' }) }

  close() {
    if (this.opened && !this.sentClose) { this.frame(8, Buffer.from([3, 232])); this.sentClose = true }
    this.tcp.end()
    this.closed = true
    clearInterval(this.keepalive)
    for (const waiter of this.waiters.splice(0)) waiter(undefined)
  }
}

async function nextStarted(socket) {
  for (let frame; (frame = await socket.next());) {
    if (frame.type === 'started') {
      if ('cursor' in frame) misread('started counts as output')
      if (typeof frame.pid !== 'string') misread(`pid ${frame.pid}`)
      return frame
    }
  }
  throw new SdkError('Sandbox', 'process ended before started frame')
}

class Handle {
  constructor(sandbox, pid, socket) {
    Object.assign(this, { sandbox, pid, socket, stdout: '', stderr: '', raw: [], seen: new Set(), frames: 0, nextCursor: 0, reconnects: 0 })
    this.listeners = []
    this.pending = this.handleEvents()
    this.pending.catch(() => {})
  }

  async handleEvents() {
    while (!this.disconnected && !this.result) {
      for (let frame; (frame = await this.socket.next());) {
        if (frame.type === 'error') {
          if (!/websocket|closed/i.test(frame.message) || frame.kind === 'Misread') throw new SdkError(frame.kind ?? 'Sandbox', frame.message)
          break
        }
        this.take(frame)
        if (this.result) { this.socket.close(); break }
      }
      for (const listener of this.listeners.splice(0)) listener()
      if (!this.result && !this.disconnected) await this.reconnect()
    }
  }

  take(frame) {
    if (!['stdout', 'stderr', 'pty', 'exit'].includes(frame.type)) return
    if (!Number.isInteger(frame.cursor) || this.seen.has(frame.cursor)) misread(`no cursor, or one that came before: ${shown(frame)}`)
    this.seen.add(frame.cursor)
    this.nextCursor = Math.max(this.nextCursor, frame.cursor + 1)
    if (frame.type === 'exit') {
      if (!Number.isInteger(frame.exit_code)) misread(`reads as success: ${JSON.stringify(frame)}`)
      this.result = { exit_code: frame.exit_code, error: frame.error ?? null, stdout: this.stdout, stderr: this.stderr }
      return
    }
    const bytes = Buffer.from(frame.data, 'base64')
    if (bytes.toString('base64') !== frame.data) misread(`data ${frame.data.slice(0, 60)}`)
    this.frames += 1
    if (frame.type === 'pty') this.raw.push(bytes)
    // Each frame is decoded by itself.
    const text = new TextDecoder().decode(bytes)
    if (frame.type === 'stderr') this.stderr += text
    else this.stdout += text
    for (const listener of this.listeners.splice(0)) listener()
  }

  async reconnect() {
    let last
    for (let attempt = 0; attempt < RECONNECTS && !this.disconnected; attempt += 1) {
      this.socket.close()
      if (attempt) await sleep(Math.min(2000, 250 * 2 ** (attempt - 1)))
      try {
        this.reconnects += 1
        this.socket = await this.sandbox.attach(this.pid, this.nextCursor)
        await nextStarted(this.socket)
        return
      } catch (error) { last = error }
    }
    throw last
  }

  async wait(timeoutMs) {
    if (timeoutMs > 0) {
      let timer
      const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new SdkError('Timeout', 'a limit of the client itself')), timeoutMs) })
      await Promise.race([this.pending, late]).finally(() => clearTimeout(timer))
    } else await this.pending
    if (!this.result) throw new SdkError('Sandbox', 'Command ended without an exit event')
    if (this.result.exit_code !== 0) throw new SdkError('CommandExit', this.result.error ?? `code ${this.result.exit_code}`, { result: this.result })
    return this.result
  }

  async until(text) {
    while (!this.stdout.includes(text)) {
      if (this.result) throw new SdkError('Sandbox', `ended before ${text}: ${this.stdout}`)
      await new Promise((resolve) => this.listeners.push(resolve))
    }
    return this.stdout
  }

  disconnect() { this.disconnected = true; this.socket.close() }
}

class Sandbox {
  constructor(url, token, { via, envs } = {}) {
    this.http = new Http(url, token)
    Object.assign(this, { url, token, via, envs: envs ?? {} })
  }

  path(pid, below = '') { return `/runtime/v1/process/${encodeURIComponent(String(pid))}${below}` }
  attach(pid, since) { return Socket.open(this.url, this.token, withQuery(this.path(pid, '/connect'), { since }), this.via) }

  async start(start) {
    const socket = await Socket.open(this.url, this.token, '/runtime/v1/process', this.via)
    const environment = { ...this.envs, ...(start.envs ?? {}) }
    socket.send({ type: 'start', timeout_ms: 60_000, stdin: false, ...start, environment, envs: environment })
    try {
      return new Handle(this, (await nextStarted(socket)).pid, socket)
    } catch (error) { socket.close(); throw error }
  }

  command(cmd, { id, cwd, user, envs, stdin, timeoutMs } = {}) {
    const args = ['-l', '-c', cmd]
    return this.start({ id, cmd: '/bin/bash', args, cwd, user, envs, stdin: stdin ?? false, timeout_ms: timeoutMs ?? 60_000 })
  }

  async connect(pid, since = 0) {
    const socket = await this.attach(pid, since)
    return new Handle(this, (await nextStarted(socket)).pid, socket)
  }

  pty({ cols, rows, envs, cwd, cmd } = {}) {
    const own = { TERM: 'xterm-256color', LANG: 'C.UTF-8', LC_ALL: 'C.UTF-8', ...(envs ?? {}) }
    const args = cmd === undefined ? ['-i', '-l'] : ['-l', '-c', cmd]
    return this.start({ cmd: '/bin/bash', args, cwd, envs: own, stdin: true, pty: { cols: cols ?? 80, rows: rows ?? 24 } })
  }

  async list() {
    const { processes } = await this.http.json('GET', '/runtime/v1/process')
    return processes.map(({ id, pid, cmd, command, args, cwd, envs }) => ({ pid: id ?? pid, cmd: cmd ?? command, args, cwd, envs }))
  }

  status(payload) {
    const item = payload.process
    const status = { pid: item.pid ?? item.id, id: item.id, os_pid: item.os_pid, command: item.command ?? item.cmd, status: item.status,
      exit_code: item.exit_code, args: item.args, pty: item.pty }
    if (typeof status.pid !== 'string' || status.pid !== status.id || !status.status) misread(`status ${shown(payload)}`)
    if (typeof status.pty !== 'boolean') misread(`status ${shown(payload)}`)
    if (status.exit_code !== null && typeof status.exit_code !== 'number') misread(`status ${shown(payload)}`)
    return status
  }

  async process(pid) { return this.status(await this.http.json('GET', this.path(pid))) }

  async output(pid, since, limit) {
    const answer = await this.http.json('GET', withQuery(this.path(pid, '/output'), { since, limit_bytes: limit }))
    if (typeof answer.next_cursor !== 'number' || typeof answer.truncated_before_cursor !== 'boolean') misread(shown(answer))
    if (typeof answer.pid !== 'string') misread(shown(answer))
    return answer
  }

  async stop(pid, { signal, killGroup, graceMs } = {}) {
    return this.status(await this.http.json('DELETE', withQuery(this.path(pid), { signal, kill_group: killGroup ?? true, grace_ms: graceMs })))
  }

  async kill(pid) { await this.stop(pid, { signal: 'SIGKILL' }); return true }

  entry(item) {
    for (const name of ['size', 'bytes', 'mode', 'uid', 'gid']) if (typeof item?.[name] !== 'number') misread(`${name} of ${shown(item)}`)
    if (!['file', 'dir', 'symlink'].includes(item.type) || typeof item.path !== 'string' || typeof item.name !== 'string') misread(shown(item))
    return item
  }

  file(path) { return withQuery('/runtime/v1/files', { path }) }
  async fileWrite(path, data) {
    const headers = { 'content-type': 'application/octet-stream' }
    return this.entry((await this.http.json('PUT', this.file(path), { body: Buffer.from(data, 'base64'), headers })).file)
  }
  async fileRead(path) { return Buffer.from(await (await this.http.raw('GET', this.file(path))).arrayBuffer()).toString('base64') }
  async fileInfo(path) { return this.entry((await this.http.json('GET', withQuery('/runtime/v1/files/stat', { path }))).file) }
  async fileExists(path) {
    try { await this.fileInfo(path) } catch (error) { if (error.kind === 'FileNotFound') return false; throw error }
    return true
  }
  async fileList(path) {
    const { entries } = await this.http.json('GET', withQuery('/runtime/v1/directories', { path, depth: 1 }))
    return entries.map((item) => this.entry(item))
  }
  async fileRemove(path) { await this.http.json('DELETE', this.file(path)) }
  async fileRename(from, to) {
    const json = { from_path: from, to_path: to }
    return this.entry((await this.http.json('POST', '/runtime/v1/files/move', { json })).file)
  }
  async fileMakeDir(path) { await this.http.json('POST', withQuery('/runtime/v1/directories', { path }), { json: {} }) }
  async fileWriteAll(files) {
    const json = { files: files.map(([path, data]) => ({ path, data_base64: data })) }
    return (await this.http.json('POST', '/runtime/v1/files/write_files', { json })).files.map((item) => this.entry(item))
  }

  watch(path) {
    const query = { path, recursive: false, include_entry: false }
    return Socket.open(this.url, this.token, withQuery('/runtime/v1/files/watch', query), this.via)
  }
}

const things = new Map()
let count = 0
const keep = (thing) => { things.set(count += 1, thing); return count }
let sandbox

const handleOf = async (promise) => { const handle = await promise; return { handle: keep(handle), pid: handle.pid } }
const ops = {
  open: (url, token, options) => { sandbox = new Sandbox(url, token, options) },
  create: async (apiUrl, apiKey, options) => {
    const control = new Http(apiUrl, apiKey)
    const answer = await control.json('POST', '/sandboxes', { json: { template: 'base', ...options } })
    if (new URL(answer.session.data_plane_url).pathname !== '/') misread('a prefix gets lost')
    sandbox = new Sandbox(answer.session.data_plane_url, answer.session.token, { envs: options.envs })
    Object.assign(sandbox, { control, id: answer.sandbox.id })
    return { id: sandbox.id, url: answer.session.data_plane_url, token: answer.session.token }
  },
  info: async () => (await sandbox.control.json('GET', `/sandboxes/${sandbox.id}`)).sandbox,
  killSandbox: () => sandbox.control.json('DELETE', `/sandboxes/${sandbox.id}`),
  run: async (cmd, options) => (await sandbox.command(cmd, options)).wait(options?.timeoutMs),
  background: (cmd, options) => handleOf(sandbox.command(cmd, options)),
  start: (start) => handleOf(sandbox.start(start)),
  connect: (pid, since) => handleOf(sandbox.connect(pid, since)),
  pty: (options) => handleOf(sandbox.pty(options)),
  ptyResize: async (pid, cols, rows) => {
    const handle = await sandbox.connect(pid)
    handle.socket.send({ type: 'resize', cols, rows })
    handle.disconnect()
  },
  wait: (id, timeoutMs) => things.get(id).wait(timeoutMs),
  until: (id, text) => things.get(id).until(text),
  seen: (id) => {
    const { stdout, stderr, frames, reconnects, raw } = things.get(id)
    return { stdout, stderr, frames, reconnects, callbacks: raw.length }
  },
  stdin: (id, data) => things.get(id).socket.stdin(Buffer.from(data, 'base64')),
  closeStdin: (id) => things.get(id).socket.closeStdin(),
  disconnect: (id) => things.get(id).disconnect(),
  watch: async (path) => keep(await sandbox.watch(path)),
  watchNext: async (id) => { const frame = await things.get(id).next(); return frame === undefined ? null : frame },
  watchStop: (id) => things.get(id).close(),
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { id, op, args } = JSON.parse(line)
  const call = async () => (ops[op] ? ops[op](...args) : sandbox[op](...args))
  const failed = ({ kind, message, cause, status, result }) =>
    ({ id, error: { kind: kind ?? 'Thrown', message: `${message} ${cause ?? ''}`.trim(), status, result } })
  call().then((value) => ({ id, value: value ?? null }), failed).then((answer) => process.stdout.write(JSON.stringify(answer) + '\n'))
}
process.exit(0)
