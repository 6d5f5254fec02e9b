// One act of the TypeScript SDK's client: `typescript.mjs URL ERA TOOL [ARGUMENTS]`, the token in TOKEN; `list` lists.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, era, tool, given] = process.argv.slice(2);
const options = era === "legacy" ? {} : { versionNegotiation: { mode: { pin: era } } };
const client = new Client({ name: "example", version: "1" }, options);
const headers = { Authorization: `Bearer ${process.env.TOKEN}` };
try {
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  console.log(client.getNegotiatedProtocolVersion());
  if (tool === "list") {
    console.log((await client.listTools()).tools.map((one) => one.name).join(" "));
  } else {
    console.log(JSON.stringify(await client.callTool({ name: tool, arguments: JSON.parse(given) }), null, 1));
  }
  await client.close();
} catch (error) {
  console.log(`${error.constructor.name}: ${error.message}`);
  process.exit(1);
}
