/** A queue of input to a run in progress: steering for the next turn, or follow-ups for after the last turn. */
export type InputQueue = "steer" | "follow_up";

/** How many waiting inputs one drain takes: the oldest one, or all. */
export type DrainMode = "one" | "all";
