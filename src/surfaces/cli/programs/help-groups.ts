import { type Command, Help } from "commander";

/** The commands grouped by purpose, in the order in which `reeve --help` prints them. */
const groups: Readonly<Record<string, readonly string[]>> = {
  "Run agents:": ["chat", "run", "eval", "sessions", "demo"],
  "Look at runs:": ["ps", "watch", "inbox", "show", "tree", "logs", "cost", "audit"],
  "Control runs:": [
    "approve",
    "steer",
    "withdraw",
    "pause",
    "resume",
    "top-up",
    "reprioritize",
    "cancel",
    "fork",
    "delete",
  ],
  "Workflows and schedules:": [
    "start",
    "signal",
    "read",
    "state",
    "update",
    "promise",
    "check-replay",
    "schedule",
  ],
  "The workspace:": ["init", "trust", "agents", "models", "skills", "mcp", "config", "worktrees"],
  "Servers and workers:": [
    "serve",
    "worker",
    "acp",
    "token",
    "pair",
    "gateway",
    "deploy",
    "dead-letters",
    "redeliver",
    "store",
  ],
  "Help:": ["docs", "doctor", "completion", "help"],
};

const order = Object.values(groups).flat();

function placeOf(command: Command): number {
  const at = order.indexOf(command.name());
  return at === -1 ? order.length : at;
}

/**
 * Groups the commands in the help of the program by purpose. A command without a group is printed last, under
 * "Commands:".
 */
export function groupHelp(program: Command): void {
  program.helpCommand("help [command]", "display help for command");
  const usual = new Help();
  const listed = usual.visibleCommands(program);
  for (const command of listed)
    for (const [heading, names] of Object.entries(groups))
      if (names.includes(command.name())) command.helpGroup(heading);
  program.configureHelp({
    visibleCommands: (command) =>
      usual.visibleCommands(command).toSorted((one, other) => placeOf(one) - placeOf(other)),
    // The groups have the order of their commands, and not that of the declarations.
    groupItems: (_declared, visible, groupOf) => usual.groupItems(visible, visible, groupOf),
  });
}
