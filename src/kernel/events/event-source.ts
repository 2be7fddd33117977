/** The protocols by which programs report what they do. An event that comes from such a report names the protocol. */
export const eventSources = Object.freeze(["acp", "a2a"] as const);

/** Protocol by which a program reports what it does: `acp` is the Agent Client Protocol, `a2a` the Agent2Agent protocol. */
export type EventSource = (typeof eventSources)[number];
