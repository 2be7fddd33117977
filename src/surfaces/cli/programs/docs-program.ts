import { Option, type Command } from "commander";
import type { DocsOptions } from "../docs/docs-command.ts";
import { exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";

const docsHelp = `
Serves the documents of this version on 127.0.0.1, without a network, until Ctrl-C: the guides, their search and the
examples. The first line is the address of PAGE. In a terminal on a machine with a screen it also opens the browser.

PAGE is a name of the list, or its last part: guides/agents or agents.

${exitCodeTable()}

Examples:
  $ reeve docs
  $ reeve docs workflows --port 4800 --no-open
  $ reeve docs --list
  $ reeve docs troubleshooting --print | less`;

/** Adds the command that shows the documents of the package. */
export function addDocsCommand(program: Command, terminal: Terminal, onEnd: (kind: ExitKind) => void): void {
  program
    .command("docs")
    .description("read the documents of this version in a browser or in the terminal")
    .argument("[PAGE]", "the page to begin with (default: the start page)")
    .option("--port <n>", "the port of the server; 0 chooses a free one", "0")
    .option("--no-open", "do not open a browser")
    .addOption(
      new Option("--list", "print the name, title and content of each page, and end").conflicts([
        "port",
        "open",
        "print",
      ]),
    )
    .addOption(
      new Option("--print", "print the page as Markdown to stdout, and end").conflicts(["port", "open"]),
    )
    .addHelpText("after", docsHelp)
    .action(async (name: string | undefined, options: DocsOptions) => {
      const { docsCommand } = await import("../docs/docs-command.ts");
      onEnd(await docsCommand(name, options, terminal));
    });
}
