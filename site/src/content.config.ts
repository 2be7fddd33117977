import { defineCollection } from "astro:content";
import { docsSchema } from "@astrojs/starlight/schema";
import { pageOf, readSources } from "../sources.ts";

/** Pages that the search leaves out: the records of why something was built as it is. */
const unsearched = /^notes\//u;

export const collections = {
  docs: defineCollection({
    schema: docsSchema(),
    loader: {
      name: "documents-of-the-repository",
      load: async (context) => {
        const sources = await readSources();
        const ids = new Map(sources.map(({ file, id }) => [file, id]));
        context.store.clear();
        for (const { id, file, title, description, body } of sources.map((source) => pageOf(source, ids))) {
          const data = await context.parseData({
            id,
            data: { title, description, pagefind: !unsearched.test(id), editUrl: false },
          });
          const rendered = await context.renderMarkdown(body);
          // Wide tables and programs scroll in boxes that the keyboard can reach, also before a script has run.
          const html = rendered.html
            .replaceAll("<pre data-language", '<pre tabindex="0" data-language')
            .replaceAll("<table>", '<div class="wide" tabindex="0"><table>')
            .replaceAll("</table>", "</table></div>");
          const digest = context.generateDigest(body);
          context.store.set({
            id: id.toLowerCase(),
            data,
            body,
            filePath: file,
            digest,
            rendered: { ...rendered, html },
          });
        }
      },
    },
  }),
};
