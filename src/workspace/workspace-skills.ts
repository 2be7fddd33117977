import { readAllowedTool, type FileSkill } from "./files/index.ts";

/**
 * Records which skills the agents of a session have loaded. The record is kept in memory: after a restart, no skill
 * approves a tool in advance.
 */
export class ActiveSkills {
  readonly #bySession = new Map<string, Set<FileSkill>>();

  add(skill: FileSkill, sessionId: string): void {
    if (!skill.isTrusted || skill.allowedTools.length === 0) return;
    const active = this.#bySession.get(sessionId) ?? new Set();
    this.#bySession.delete(sessionId);
    this.#bySession.set(sessionId, active.add(skill));
    if (this.#bySession.size > maxSessions) this.#bySession.delete([...this.#bySession.keys()][0] ?? "");
  }

  /** Whether a loaded skill of the session approves the call in advance. */
  allows(sessionId: string, toolName: string, input: unknown): boolean {
    for (const { allowedTools } of this.#bySession.get(sessionId) ?? [])
      for (const entry of allowedTools) {
        const allowed = readAllowedTool(entry);
        if (allowed?.tool === toolName && allowed.fits(input)) return true;
      }
    return false;
  }
}

const maxSessions = 1_000;
