// Stands before a gateway for clients that cannot send a token: adds it, and passes everything else as it came, Host and Origin too.
// token_proxy.mjs HOST PORT TOKEN_FILE: listens on the same port of 127.0.0.1, says "ready" then, and ends with its stdin.
import { readFileSync } from 'node:fs'
import http from 'node:http'

const [host, port, tokenFile] = process.argv.slice(2)
const token = readFileSync(tokenFile, 'utf8').trim()
const agent = new http.Agent({ keepAlive: true })

const server = http.createServer((request, response) => {
	const headers = [...request.rawHeaders, 'Authorization', `Bearer ${token}`]
	const onward = http.request({ host, port, method: request.method, path: request.url, headers, agent, setHost: false })
	onward.on('response', (answer) => {
		response.writeHead(answer.statusCode, answer.statusMessage, answer.rawHeaders)
		// A stream's head must not wait for its first event.
		response.flushHeaders()
		answer.pipe(response)
		answer.on('aborted', () => response.destroy())
	})
	onward.on('error', () => response.destroy())
	response.on('close', () => onward.destroy())
	request.pipe(onward)
})
server.listen(Number(port), '127.0.0.1', () => console.log('ready'))
process.stdin.resume().on('end', () => process.exit(0))
