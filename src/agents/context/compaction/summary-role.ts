/**
 * The model role for summaries. With it, middleware can distinguish them from answers, and `route` may choose a
 * cheaper model.
 */
export const summaryRole = "summary";
