/** In whose name an order is given when nobody said. */
export const unnamed = "user";
