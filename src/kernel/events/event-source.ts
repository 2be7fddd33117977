/** The protocols by which programs report what they do. The events that say what a program tells of itself are marked with one. */
export const eventSources = Object.freeze(["acp"] as const);

/** How a program reports what it does: `acp` is the Agent Client Protocol. */
export type EventSource = (typeof eventSources)[number];
