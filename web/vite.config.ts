import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";

/**
 * Puts the styles into `index.html`, so that the first paint waits for no second file: 8 % of the first paint of
 * `npm run bench -- page`. The server allows them by their hash (`page-files.ts`).
 */
const stylesInPage: Plugin = {
  name: "styles-in-page",
  enforce: "post",
  transformIndexHtml: {
    order: "post",
    handler: (html, { bundle = {} }) =>
      html.replace(/<link rel="stylesheet"[^>]* href="\/(?<file>[^"]+)">/gu, (link, file: string) => {
        const asset = bundle[file];
        if (asset?.type !== "asset") return link;
        delete bundle[file];
        return `<style>${asset.source.toString()}</style>`;
      }),
  },
};

/** The page is built into the package's `dist`, from which `reeve serve` serves it. */
export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  plugins: [stylesInPage],
  build: {
    outDir: fileURLToPath(new URL("../dist/page", import.meta.url)),
    emptyOutDir: true,
    license: { fileName: "libraries-licences.txt" },
    target: "es2023",
    // A file that is inlined as a data URL would need a wider Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: ["index.html", "after-paint.ts"].map((file) => fileURLToPath(new URL(file, import.meta.url))),
      // The server names this script, so its name has no hash.
      output: {
        entryFileNames: ({ name }) => (name === "after-paint" ? "[name].js" : "assets/[name]-[hash].js"),
      },
    },
  },
});
