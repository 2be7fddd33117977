import type { Command } from "commander";
import type { ChatOptions } from "../chat/chat-command.ts";
import { defaultStore } from "../setup/default-store.ts";
import { exitCodeTable, type ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { addAgentOptions } from "./agent-options.ts";

const chatHelp = `
A conversation with an agent of this folder. Enter sends; while the agent works, Enter steers it, Alt+Enter queues a
text for its end, and Esc stops it. Questions of agents are asked in their place. /help lists the commands.

Leaving cancels nothing: a run in progress is continued by a server or worker of the store, or by the next
reeve chat --continue. Each line is stored before the next one is asked for, so a crash loses nothing.

With --url, the conversation is with an agent of a server, which executes its runs; REEVE_TOKEN is the token
(reeve token create). Without a terminal, or with --plain, lines are read from stdin and answers go to stdout.

${exitCodeTable()}

Examples:
  $ reeve chat --model anthropic/claude-sonnet-5
  $ reeve chat --continue                    # the last conversation of this folder
  $ reeve chat --agent reviewer --tools read
  $ reeve chat --url http://127.0.0.1:4711   # an agent of reeve serve
  $ python3 client.py                        # a program that starts reeve chat --mode rpc
  $ echo "What does this project do?" | reeve chat --plain`;

/** Adds the command for a conversation in the terminal. */
export function addChatCommands(program: Command, terminal: Terminal, onEnd: (kind: ExitKind) => void): void {
  const chat = program.command("chat").description("talk with an agent in the terminal");
  addAgentOptions(chat, { model: "the model (default: $REEVE_MODEL)", tools: "their own, or read" });
  chat
    .option("--agent <name>", "the agent (default: the default agent of the workspace, or assistant)")
    .option("--profile <name>", "the profile (default: $REEVE_PROFILE)")
    .option("--root <folder>", "the folder that the tools may use (default: the current folder)")
    .option("--session <id>", "the conversation to continue")
    .option("-c, --continue", "continue the last conversation")
    .option("--new", "start a new conversation (the default)")
    .option("--url <server>", "talk with an agent of this server")
    .option("--mode <text|rpc>", "rpc: a program talks in lines of JSON on stdin and stdout", "text")
    .option("--plain", "print lines instead of drawing: for pipes and screen readers")
    .option(
      "--store <address>",
      "where runs are kept, as sqlite:PATH or postgres://HOST/DATABASE",
      defaultStore,
    )
    .addHelpText("after", chatHelp)
    .action(async (options: ChatOptions) => {
      const { chatCommand } = await import("../chat/chat-command.ts");
      onEnd(await chatCommand(options, terminal));
    });
}
