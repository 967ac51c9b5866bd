import type { SessionId } from '@plugboard/kernel/contracts';
import t from 'tap';
import { failingCases, PlainStore } from './plain-store.js';

t.test('documents that are kept badly', async (t) => {
  class OneProject extends PlainStore {
    override nameOf(_: string, name: string) {
      return name;
    }
  }
  t.ok((await failingCases(OneProject)).includes('isolates the documents of projects'));

  class FirstStays extends PlainStore {
    override async putDocument(id: SessionId, name: string, text: string) {
      if (!(await this.document(id.project, name))) await super.putDocument(id, name, text);
    }
  }
  t.same(await failingCases(FirstStays), ['replaces a document of the same name']);

  class Homeless extends PlainStore {
    override async putDocument(id: SessionId, name: string, text: string) {
      this.kept.documents.set(this.nameOf(id.project, name), { id, text });
    }
  }
  t.same(await failingCases(Homeless), ['stores no document without a session']);

  class Immortal extends PlainStore {
    override async document(project: string, name: string) {
      return this.kept.documents.get(this.nameOf(project, name));
    }

    override async delete(id: SessionId) {
      const documents = new Map(this.kept.documents);
      const existed = await super.delete(id);
      for (const [name, document] of documents) this.kept.documents.set(name, document);
      return existed;
    }
  }
  t.ok((await failingCases(Immortal)).includes('deletes the documents of a deleted session'));

  class Copied extends PlainStore {
    override async fork(id: SessionId, key: string, turns: number) {
      await super.fork(id, key, turns);
      for (const [name, { id: owner, text }] of this.kept.documents) {
        if (this.keyOf(owner) === this.keyOf(id)) this.kept.documents.set(name, { id: { ...id, key }, text });
      }
    }
  }
  t.same(await failingCases(Copied), ['does not copy documents to a fork']);

  class WithSession extends PlainStore {
    override async deleteDocument(project: string, name: string) {
      const found = await this.document(project, name);
      const left = await super.deleteDocument(project, name);
      if (found) await this.delete(found.id);
      return left;
    }
  }
  t.same(await failingCases(WithSession), ['deletes a document without its session']);

  class Uncounted extends PlainStore {
    override async deleteDocument(project: string, name: string) {
      const left = await super.deleteDocument(project, name);
      return left === undefined ? undefined : this.kept.documents.size;
    }
  }
  t.same(await failingCases(Uncounted), ['deletes a document without its session']);
});
