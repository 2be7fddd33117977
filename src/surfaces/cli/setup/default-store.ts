/** The store of a folder. In a module of its own, because the help of commands shows it and loads no store. */
export const defaultStore = "sqlite:.reeve/reeve.db";
