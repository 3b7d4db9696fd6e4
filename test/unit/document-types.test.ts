import { expect } from 'chai';
import { findDocumentType } from '../../service/issuance/credential';

describe('the document type in a path', () => {
  it('is found in upper, lower or mixed case', () => {
    for (const written of ['BILL_OF_LADING', 'bill_of_lading', 'Bill_Of_Lading'])
      expect(findDocumentType(written), written).to.equal('BILL_OF_LADING');
  });

  it('is undefined if it is not supported', () => {
    for (const written of ['', 'INVOICE', 'BILL-OF-LADING', 'BILL_OF_LADING '])
      expect(findDocumentType(written), written).to.equal(undefined);
  });
});
