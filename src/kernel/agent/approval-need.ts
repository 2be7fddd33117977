import type { Tool } from "./tool.ts";

/** Whether a mistaken call counts as `critical`. A risk that is absent or unknown counts as critical. */
export function isCritical({ risk }: Partial<Pick<Tool, "risk">>): boolean {
  return risk !== "safe" && risk !== "high";
}

/** What a call reaches (`Tool.approvalScope`). `null` if the tool has no such value. */
export function scopeOfCall(tool: Pick<Tool, "approvalScope">, parsed: unknown): string | null {
  return tool.approvalScope?.(parsed) ?? null;
}

/**
 * Returns why a call needs a person's approval if no permissions decide: the tool is critical, or the call reaches
 * something that was not approved. `undefined` if it needs none. The tool's own `needsApproval` comes in addition.
 */
export function reasonToAsk(tool: Tool, parsed: unknown): string | undefined {
  if (isCritical(tool)) return `${tool.name} is critical`;
  const scope = scopeOfCall(tool, parsed);
  return scope === null ? undefined : `${tool.name} reaches ${scope}`;
}
