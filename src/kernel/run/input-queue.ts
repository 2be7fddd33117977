/** What people may say to a run under way: for the turn that comes next, or for after the last. */
export type InputQueue = "steer" | "follow_up";

/** How many of the inputs that wait one drain takes. */
export type DrainMode = "one" | "all";
