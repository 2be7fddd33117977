import type { Command } from "commander";

/** A shell for which a completion script can be printed. */
export type Shell = "bash" | "zsh" | "fish";

/** A command or a group of commands, with the words that may follow it. */
interface Node {
  /** The names of the commands from the program to this command. Empty for the program itself. */
  readonly path: readonly string[];
  readonly commands: readonly Word[];
  readonly options: readonly Word[];
}

interface Word {
  readonly name: string;
  readonly description: string;
}

/** Returns the script with which a shell completes the commands and options of the program. */
export function completionScript(shell: Shell, program: Command): string {
  const nodes = nodesOf(program, []);
  if (shell === "fish") return fishScript(nodes);
  // zsh reads the functions of bash.
  const head = shell === "zsh" ? "#compdef reeve\nautoload -U +X bashcompinit && bashcompinit\n" : "";
  return head + bashScript(nodes);
}

function nodesOf(command: Command, path: readonly string[]): readonly Node[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command).filter((each) => each.name() !== "help");
  const options = help
    .visibleOptions(command)
    .flatMap(({ long, description }) => (long ? [{ name: long, description }] : []));
  const own = {
    path,
    commands: commands.map((each) => ({ name: each.name(), description: each.description() })),
    options,
  };
  return [own, ...commands.flatMap((each) => nodesOf(each, [...path, each.name()]))];
}

function bashScript(nodes: readonly Node[]): string {
  const cases = nodes
    // The longest path first, because the first pattern that fits is taken.
    .toSorted((one, other) => other.path.length - one.path.length)
    .map(({ path, commands, options }) => {
      const pattern = [...path, "*"].slice(0, 2).join(":");
      const words = [...commands, ...options].map(({ name }) => name);
      return `    ${pattern}) words="${words.join(" ")}" ;;`;
    });
  return `_reeve_complete() {
  local current="\${COMP_WORDS[COMP_CWORD]}" first="" second="" words=""
  [ "$COMP_CWORD" -gt 1 ] && first="\${COMP_WORDS[1]}"
  [ "$COMP_CWORD" -gt 2 ] && second="\${COMP_WORDS[2]}"
  case "$first:$second" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _reeve_complete reeve
`;
}

/** Returns the conditions under which the fish shell offers a word. */
function at(conditions: readonly string[]): string {
  return conditions.length === 0 ? "" : ` -n "${conditions.join("; and ")}"`;
}

function fishScript(nodes: readonly Node[]): string {
  const lines = nodes.flatMap(({ path, commands, options }) => {
    // In `sessions show`, the options of `show` are not offered.
    const groups = path.length === 1 ? groupsWith(path[0], nodes) : [];
    const seen = [
      ...path.map((name) => `__fish_seen_subcommand_from ${name}`),
      ...(groups.length === 0 ? [] : [`not __fish_seen_subcommand_from ${groups.join(" ")}`]),
    ];
    const names = commands.map(({ name }) => name).join(" ");
    const unseen = names === "" ? [] : [`not __fish_seen_subcommand_from ${names}`];
    return [
      ...commands.map(
        ({ name, description }) =>
          `complete -c reeve -f${at([...seen, ...unseen])} -a ${name} -d '${quoted(description)}'`,
      ),
      ...options.map(
        ({ name, description }) =>
          `complete -c reeve${at([...seen, ...unseen])} -l ${name.slice(2)} -d '${quoted(description)}'`,
      ),
    ];
  });
  return `${lines.join("\n")}\n`;
}

/** Returns the groups that contain a command of this name. */
function groupsWith(name: string | undefined, nodes: readonly Node[]): readonly string[] {
  return nodes.flatMap(({ path, commands }) =>
    path.length === 1 && commands.some((each) => each.name === name) ? path : [],
  );
}

/** A text inside single quotes of fish. */
function quoted(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("'", "\\'");
}
