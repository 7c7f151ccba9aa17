// An official client, driven by lines of JSON: {"do": NAME, …} in, {"value"} or {"error"} out, one each.
// driver.mjs FOLDER: the folder whose node_modules has the packages.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const require = createRequire(`${process.argv[2]}/package.json`)
const clients = {
	// Both eras.
	v2: () => ({ ...require('@modelcontextprotocol/client'), ...require('@modelcontextprotocol/client/stdio') }),
	// The older package, which knows the legacy era alone.
	v1: () => ({
		...require('@modelcontextprotocol/sdk/client/index.js'),
		...require('@modelcontextprotocol/sdk/client/stdio.js'),
		...require('@modelcontextprotocol/sdk/client/streamableHttp.js'),
	}),
}

let client, kind
const notes = []

function transport(kit, { url, token, command, args, env, cwd }) {
	if (command) return new kit.StdioClientTransport({ command, args, env, cwd, stderr: 'inherit' })
	return new kit.StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })
}

const actions = {
	async connect({ package: name, mode, to }) {
		kind = name
		const kit = clients[kind]()
		client = new kit.Client({ name: 'coop-tests', version: '1' }, mode ? { versionNegotiation: { mode } } : {})
		const link = transport(kit, to)
		// The older client tells the version to its transport, and to nobody else.
		let version = null
		const tell = link.setProtocolVersion?.bind(link)
		link.setProtocolVersion = (given) => {
			version = given
			tell?.(given)
		}
		await client.connect(link)
		return {
			version: client.getNegotiatedProtocolVersion?.() ?? version,
			server: client.getServerVersion() ?? null,
			capabilities: client.getServerCapabilities() ?? null,
			instructions: client.getInstructions() ?? null,
		}
	},
	tools: () => client.listTools(),
	// The client refuses a result that is not as the tool's outputSchema says.
	call({ name, arguments: given, progress }) {
		const options = progress ? { onprogress: (note) => notes.push(note) } : undefined
		const call = { name, arguments: given ?? {} }
		return kind === 'v1' ? client.callTool(call, undefined, options) : client.callTool(call, options)
	},
	// Changes the next results of a tool before the client looks at them.
	forge({ name }) {
		const { transport } = client
		const taken = transport.onmessage
		transport.onmessage = (message, ...more) => {
			if (message.result?.structuredContent) message.result.structuredContent = { processes: `forged ${name}` }
			taken(message, ...more)
		}
	},
	resources: () => client.listResources(),
	templates: () => client.listResourceTemplates(),
	read: ({ uri }) => client.readResource({ uri }),
	notes: () => notes.splice(0),
	close: () => client.close(),
}

for await (const line of createInterface({ input: process.stdin })) {
	const job = JSON.parse(line)
	let answer
	try {
		answer = { value: (await actions[job.do](job)) ?? null }
	} catch (error) {
		answer = { error: { name: error.name, code: error.code ?? null, message: String(error.message), stack: error.stack } }
	}
	process.stdout.write(JSON.stringify(answer) + '\n')
}
process.exit(0)
