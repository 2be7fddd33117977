import { fileURLToPath } from "node:url";

/** Root of the repository. */
export const repository = fileURLToPath(new URL("..", import.meta.url));

/** What a build writes before Astro starts: the pages of the API and the pictures. */
export const prepared = {
  api: fileURLToPath(new URL("../node_modules/.cache/site/api", import.meta.url)),
  pictures: fileURLToPath(new URL("../node_modules/.cache/site/public", import.meta.url)),
};

/** The built site. */
export const output = fileURLToPath(new URL("dist", import.meta.url));
