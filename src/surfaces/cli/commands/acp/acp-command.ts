import { Readable, Writable } from "node:stream";
import { needingPackage } from "../../../../capabilities/optional-package.ts";
import { connectEditor, type AcpSdk } from "../../../protocols/acp/acp-agent.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { OpenParts } from "../../setup/open-parts.ts";
import { reserveStdout } from "../../terminal/process-terminal.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import { EditorFolders, type AcpOptions } from "./editor-folders.ts";

/** Serves an editor over stdin and stdout, until the editor closes stdin or the process is interrupted. */
export async function acpCommand(options: AcpOptions, terminal: Terminal): Promise<ExitKind> {
  const sdk = await loadSdk();
  const output = protocolOutput();
  const open = new OpenParts();
  try {
    const host = new EditorFolders(options, terminal, open);
    const stream = sdk.ndJsonStream(
      Writable.toWeb(output),
      Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>,
    );
    const connection = connectEditor(sdk, stream, host);
    const onSignal = (): void => connection.close();
    terminal.onInterrupt(onSignal);
    process.on("SIGTERM", onSignal);
    terminal.say("reeve: waiting for an editor (Agent Client Protocol); stdout is for the editor only");
    await connection.closed;
    return "ok";
  } finally {
    await open.close();
    process.stdin.destroy();
  }
}

/** Loads the optional packages. Throws `dependency_missing` with the command that installs the missing packages. */
async function loadSdk(): Promise<AcpSdk> {
  return needingPackage("zod", "reeve acp", () =>
    needingPackage("@agentclientprotocol/sdk", "reeve acp", () => import("@agentclientprotocol/sdk")),
  );
}

/**
 * Returns the output stream of the protocol. The editor reads every line of stdout as a message. The stream writes
 * through `process.stdout`, which waits for an editor that reads slowly. A direct write to the file descriptor
 * would fail with EAGAIN, because its pipe is non-blocking.
 */
export function protocolOutput(): Writable {
  const write = reserveStdout();
  const output = new Writable({
    write: (chunk: Uint8Array, _encoding, done) => void write(chunk, done),
  });
  output.on("error", (error) =>
    process.stderr.write(`reeve: the editor does not read: ${printable(error.message)}\n`),
  );
  return output;
}
