/** The protocols by which programs report what they do. An event that repeats such a report names the protocol. */
export const eventSources = Object.freeze(["acp"] as const);

/** How a program reports what it does: `acp` is the Agent Client Protocol. */
export type EventSource = (typeof eventSources)[number];
