/**
 * The model role of summaries, so that middleware can tell them from answers and `route` may choose a cheaper model.
 */
export const summaryRole = "summary";
