import { fileURLToPath } from "node:url";

/** The command of an agent that is a file of this folder. */
export function agentFile(name: string, ...args: readonly string[]): readonly string[] {
  return [process.execPath, fileURLToPath(new URL(`${name}.ts`, import.meta.url)), ...args];
}

/**
 * The command of an agent without the ACP package. `on` is the source of a function that receives each message of Reeve and
 * answers with `send`; `first` is executed before.
 */
export function agentCode(on: string, first = ""): readonly string[] {
  const code = `
    const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
    ${first};
    const on = ${on};
    require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => on(JSON.parse(line)));`;
  return [process.execPath, "-e", code];
}

/** The source of an agent that answers `initialize`, and other messages with `else ...; }`. */
export const ready = `({ id, method, params }) => {
  if (method === "initialize") send({ id, result: { protocolVersion: 1, agentCapabilities: {} } });`;
