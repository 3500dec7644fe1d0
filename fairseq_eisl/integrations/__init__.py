"""EISL in trainers of other libraries; nothing here needs fairseq."""
