import type { Commit } from "../../kernel/index.ts";

/** L21: returns the machine to which a commit binds its run. `undefined` if the commit does not bind it. */
export function hostIn({ events }: Commit): string | undefined {
  if (events === undefined) return undefined;
  for (const event of events) if (event.type === "run_bind") return event.data.host;
  return undefined;
}
