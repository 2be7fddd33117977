/** Commands of other tools, each with the Reeve command that does the same. */
const otherCommands: Readonly<Record<string, string>> = {
  continue: "reeve run --continue PROMPT",
  list: "reeve ps",
  ls: "reeve ps",
  runs: "reeve ps --all",
  status: "reeve show RUN",
  inspect: "reeve show RUN",
  log: "reeve logs RUN",
  events: "reeve logs RUN",
  tail: "reeve logs -f RUN",
  kill: "reeve cancel RUN",
  topup: "reeve top-up RUN",
  priority: "reeve reprioritize RUN PRIORITY",
  stop: "reeve cancel RUN",
  deny: "reeve approve RUN --deny",
  reject: "reeve approve RUN --deny",
  approvals: "reeve approve",
  questions: "reeve inbox",
  check: "reeve doctor",
  diagnose: "reeve doctor",
  settings: "reeve config",
  model: "reeve models",
  skill: "reeve skills",
  verify: "reeve audit verify",
  usage: "reeve cost RUN",
  session: "reeve sessions list",
  history: "reeve sessions list",
  cron: "reeve schedule add",
  schedules: "reeve schedule list",
  server: "reeve serve",
  dev: "reeve serve",
  tokens: "reeve token list",
};

/** Options of other tools, each with the Reeve option or command that does the same. */
const otherOptions: Readonly<Record<string, string>> = {
  "--budget": "--max-budget-usd",
  "--max-usd": "--max-budget-usd",
  "--max-cost": "--max-budget-usd",
  "--max-cost-usd": "--max-budget-usd",
  "--max-steps": "--max-turns",
  "--prompt": "the prompt as an argument: reeve run PROMPT",
  "--system": "--instructions",
  "--system-prompt": "--instructions",
  "--url": "--base-url",
  "--api-key": "the variable of the provider, such as ANTHROPIC_API_KEY",
  "--json": "--mode json",
  "--output-format": "--mode",
  "--db": "--store sqlite:PATH",
  "--cwd": "--root",
  "--session-id": "--session",
};

/** Returns what to use in place of a command of another tool. `undefined` if the command is unknown. */
export function commandInsteadOf(name: string | undefined): string | undefined {
  return name !== undefined && Object.hasOwn(otherCommands, name) ? otherCommands[name] : undefined;
}

/** Returns what to use in place of an option of another tool, found by the error message that refuses the option. */
export function optionInsteadOf(message: string): string | undefined {
  const name = /unknown option '(--[a-z-]+)/u.exec(message)?.[1];
  return name !== undefined && Object.hasOwn(otherOptions, name) ? otherOptions[name] : undefined;
}
