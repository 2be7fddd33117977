import { setTimeout } from "node:timers/promises";
import { RestateAdmin, type Deployment } from "../../../../assembly/restate.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { columns } from "../../terminal/format.ts";
import { numberOf } from "../../setup/settings-options.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

/** Options of all commands of `reeve deploy`, as texts from the command line. */
export interface DeployOptions {
  readonly adminUrl: string;
}

export interface ListDeploymentsOptions extends DeployOptions {
  readonly json?: boolean;
}

export interface DrainOptions extends DeployOptions {
  readonly wait?: string;
  readonly service?: string;
}

/** Interval at which `reeve deploy drain --wait` checks again, in milliseconds. */
const lookMs = 500;

/** Registers the address of workers with Restate and prints the id of the deployment. */
export async function deploy(
  uri: string,
  { adminUrl }: DeployOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const admin = new RestateAdmin(adminUrl);
  const id = await admin.deploy(uri);
  await terminal.out(id);
  const all = await admin.list();
  const names = all.find((each) => each.id === id)?.services.map(({ name }) => name) ?? [];
  terminal.say(`New work of ${printable(names.join(", "))} runs on ${printable(uri)}.`);
  for (const name of names)
    if (all.some(({ isCurrent, services }) => !isCurrent && services.some((each) => each.name === name)))
      terminal.say(
        `Old versions are registered, too; reeve deploy drain --service ${printable(name)} removes them.`,
      );
  return "ok";
}

/** Prints the versions that are registered with Restate, the newest first. */
export async function listDeployments(
  { adminUrl, json = false }: ListDeploymentsOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const all = await new RestateAdmin(adminUrl).list();
  const lines = json ? all.map((each) => JSON.stringify(each)) : columns(all.map(row));
  for (const line of lines) await terminal.out(line);
  if (!json) terminal.say(`Versions: ${all.length}`);
  return "ok";
}

/**
 * Removes old versions that execute no runs, and prints their ids. For all other versions, prints the runs that
 * they still execute.
 */
export async function drainDeployments(
  { adminUrl, wait, service }: DrainOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const waitMs = (numberOf("--wait", wait, {}) ?? 0) * 1_000;
  const admin = new RestateAdmin(adminUrl);
  const until = Date.now() + waitMs;
  let known = "";
  for (;;) {
    const { removed, remaining } = await admin.drain(service === undefined ? {} : { service });
    for (const { id } of removed) await terminal.out(id);
    const text = remaining.map(remainingText).join("\n");
    if (text !== known && text !== "") terminal.say(text);
    known = text;
    if (remaining.length === 0) return "ok";
    if (Date.now() >= until) {
      terminal.say(
        "Keep the workers of these versions running, and drain again later; --wait SECONDS waits.",
      );
      return "busy";
    }
    await setTimeout(Math.min(lookMs, until - Date.now()));
  }
}

function row({ id, uri, createdAt, services, isCurrent, openInvocations }: Deployment): string[] {
  const names = services.map(({ name, revision }) => `${name} ${revision}`).join(", ");
  const state = isCurrent ? "current" : openInvocations === 0 ? "unused" : "old";
  return [id, state, printable(uri), printable(names), createdAt, `${openInvocations} running`];
}

function remainingText({ id, uri, openInvocations, openRuns }: Deployment): string {
  const more = openInvocations - openRuns.length;
  const runs = `${openRuns.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  return `${id} at ${printable(uri)} is not removed: it still executes ${printable(runs)}`;
}
