import { openWorkspace } from "../../../../workspace/workspace.ts";
import { reportNotices } from "../../setup/run-workspace.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { columns } from "../../terminal/format.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

export interface SkillsCommandOptions {
  readonly profile?: string;
  readonly json?: boolean;
}

/** Lists the skills of the workspace with their place and the tools that they approve in advance. */
export async function skillsCommand(
  { profile, json = false }: SkillsCommandOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  await using workspace = await openWorkspace(profile === undefined ? {} : { profile });
  const { skills } = workspace;
  const rows = skills.map(({ name, origin, hidden = false, isTrusted, allowedTools, file, description }) =>
    [
      name,
      hidden ? `${origin}, hidden from the model` : origin,
      allowedTools.length === 0
        ? "approves nothing"
        : `${isTrusted ? "approves" : "would approve after reeve trust"} ${allowedTools.join(" ")}`,
      file,
      description,
    ].map(printable),
  );
  const lines = json
    ? skills.map((skill) => JSON.stringify(skill))
    : columns(terminal.isWatched && rows.length > 0 ? [heading, ...rows] : rows);
  for (const line of lines) await terminal.out(line);
  if (skills.length === 0)
    terminal.say("No skill found; write one to .reeve/skills/NAME/SKILL.md, as reeve init does.");
  reportNotices(workspace, terminal);
  return "ok";
}

const heading = ["SKILL", "ORIGIN", "CALLS", "FILE", "DESCRIPTION"];
