import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { makePdf } from '../fixtures/pdf';

describe('the PDF fixture', () => {
  const pdf = makePdf();
  const text = pdf.toString('latin1');

  it('is at least 5 MiB, and the same bytes on every call', () => {
    expect(pdf.length).to.be.at.least(5 * 1024 * 1024);
    expect(makePdf().equals(pdf)).to.equal(true);
  });

  it('never changes, so that measurements can be compared', () => {
    expect(createHash('sha256').update(pdf).digest('hex')).to.equal(
      'ebbcb8a37572afdc9440f89a4e23126a49af82d4edb2ca6a86d7341f3b75d71c',
    );
  });

  it('has a cross-reference table that leads to every object', () => {
    const start = Number(/startxref\n(\d+)\n%%EOF\n$/.exec(text)?.[1]);
    const table = /^xref\n0 (\d+)\n((?:\d{10} \d{5} [fn] \n)+)trailer\n/.exec(text.slice(start));
    const entries = table?.[2]?.match(/.{20}/gs) ?? [];
    expect(entries).to.have.length(Number(table?.[1]));
    entries.slice(1).forEach((entry, index) => {
      const offset = Number(entry.slice(0, 10));
      expect(text.slice(offset, offset + 9)).to.equal(`${index + 1} 0 obj\n<`.slice(0, 9));
    });
  });

  it('states the true length of every stream', () => {
    const streams = [...text.matchAll(/\/Length (\d+) >>\nstream\n/g)];
    expect(streams).to.have.length(2);
    for (const found of streams) {
      const end = found.index + found[0].length + Number(found[1]);
      expect(text.slice(end, end + 11)).to.equal('\nendstream\n');
    }
  });
});
