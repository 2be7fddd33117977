import { Fault, type Store } from "../kernel/index.ts";

/** Lets go of sessions that nobody named and nobody came back to since then. */
export function unnamedSessions({ sessions }: Store): (before: number) => Promise<number> {
  const collect = sessions.collect?.bind(sessions);
  if (collect === undefined)
    throw new Fault(
      "unsupported",
      "keepUnnamedSessionsMs is for a store in memory: this one keeps a session until runtime.deleteSession",
    );
  return (unnamedBefore) => collect({ unnamedBefore });
}
